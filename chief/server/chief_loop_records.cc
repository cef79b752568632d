// What the loop does for the records of its job (job_records.h): shows them the core, and has them written.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/server/chief_loop.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kStatsEvery = absl::Seconds(2);

}  // namespace

TimelineRecorder::Present ChiefLoop::Present() {
  const auto members = [this] {
    std::map<int32_t, std::string> names;
    for (const auto& line : core_.View().workers) {
      if (line.rank >= 0) names[line.rank] = line.name;
    }
    std::vector<std::string> by_rank;
    for (auto& [rank, name] : names) by_rank.push_back(std::move(name));
    return by_rank;
  };
  return {core_.phase(), core_.generation(), agreed_step_, members};
}

void ChiefLoop::ShowMarks() {
  if (!exit_.has_value()) records_.SetHooks(hooks_->marks());
}

void ChiefLoop::Perform(const WorkerCounters& action) {
  progress_.On(action);
  records_.Reported(Now(), action);
}

void ChiefLoop::Perform(const WorkerChanged& action) {
  WriteSoon(clock_.Now());
  const Worker* const worker = core_.Find(action.incarnation);
  records_.Changed(Now(), action, worker == nullptr ? "" : worker->host, worker == nullptr ? "" : worker->device);
  // Of the others an Announce says why.
  if (action.change == WorkerChange::kCrashed || action.change == WorkerChange::kRefused) return;
  LogLineAbout(LogLevel::info, action.name, absl::StrCat(action.name, ": ", action.reason));
}

void ChiefLoop::WriteStats(absl::Time now) {
  next_stats_ = now + kStatsEvery;
  if (stats_are_written_.exchange(true)) return;  // a slow disk must not gather a queue of them
  ShowMarks();
  storage_.Post([this, batch = records_.Take({now, absl::Now()}, core_.View())] {
    absl::Status status = writer_.Write(batch);
    status.Update(keep_addresses_());
    // The one write of a chief that has nothing to save: here it learns that a newer one took the directory.
    if (IsFenced(status)) {
      Post(TermLost{options_.config.recovered.term + 1}, true);
    } else if (!status.ok() && !stats_failed_) {
      LS_LOG(warn, "worker statistics, addresses and the graph for TensorBoard: ", status.message(),
             "; they are written when the storage takes them");
    }
    stats_failed_ = !status.ok();
    stats_are_written_ = false;
  });
}

void ChiefLoop::FinishStorage() {
  storage_.Finish();
  writer_.WriteLast(records_.TakeLast(Now(), core_.View(), core_.member_count()));
}

void ChiefLoop::KeepLastLines() {
  storage_.Finish();
  writer_.WriteLog();
}

}  // namespace lockstep::chief
