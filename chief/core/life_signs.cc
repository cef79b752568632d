#include "chief/core/life_signs.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

void LifeSigns::Beat(Worker& worker, const HeartbeatReceived& event, absl::Time now) {
  worker.heard = now;
  const Heartbeat& beat = event.heartbeat;
  if (beat.progress != worker.progress || beat.phase != worker.phase) Progressed(worker, now);
  worker.progress = beat.progress;
  worker.phase = beat.phase;
  worker.step = beat.position.step;
  worker.doing = event.doing;
}

void LifeSigns::Progressed(Worker& worker, absl::Time now) {
  if (Works(worker.phase)) no_progress_.WentOn(now - worker.progressed);
  worker.progressed = now;
}

void LifeSigns::Stepped(const std::vector<Member>& members) {
  if (!no_progress_.IsRaised()) return;
  for (const Member& member : members) no_progress_.Stepped(member.name);
}

LifeSigns::Judgement LifeSigns::Judge(const Worker& worker, absl::Time now, absl::Duration heartbeat_limit) {
  if (now - worker.heard > heartbeat_limit) {
    return {Sign::kSilent, absl::StrCat("silent for ", absl::FormatDuration(now - worker.heard))};
  }
  if (!Works(worker.phase) || now - worker.progressed <= no_progress_.Of(worker.name())) return {};
  no_progress_.Lost(worker.name());
  return {Sign::kStandsStill,
          absl::StrCat("no node executed and no byte moved for ", absl::FormatDuration(now - worker.progressed),
                       worker.doing.empty() ? "" : absl::StrCat(": ", worker.doing))};
}

}  // namespace lockstep::chief
