// What is known of workers that left the roster: why, whether a supervisor saw their processes end, who may still come
// back, and who has to hear of the job's end before the chief may go.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_DEPARTURES_H_
#define LOCKSTEP_CHIEF_CORE_DEPARTURES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/limits.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class Departures {
 public:
  // A worker is here. A new process under the name of an old one means that the old one is dead and will not ask.
  void Came(const Incarnation& id, const std::string& name) {
    reasons_.erase(name);
    reported_error_.erase(name);
    exited_.erase(name);
    goodbyes_.erase(name);
    std::erase_if(may_return_, [&](const auto& entry) { return entry.second.name == name || entry.first == id; });
    std::erase_if(to_hear_, [&](const auto& entry) { return entry.second == name && entry.first != id; });
  }
  // A worker left the roster. `holds`: it may hold what nobody has saved.
  void Went(const Incarnation& id, const std::string& name, WorkerChange change, bool holds, absl::Time now) {
    const bool ended = exited_.count(name) != 0;
    if (ended) to_hear_.erase(id);
    if (change != WorkerChange::kLost) return;
    if (holds && !ended) holder_lost_ = now;
    if (!ended && may_return_.size() < kMaxWorkers) may_return_[id] = {name, now};
  }
  // What people hear of that.
  void Count(const std::string& name, WorkerChange change, const std::string& reason) {
    losses_ += change == WorkerChange::kLost ? 1 : 0;
    preemptions_ += change == WorkerChange::kPreempted ? 1 : 0;
    if (reasons_.size() < kMaxWorkers) reasons_[name] = reason;
  }
  // It said so itself: it knows all it has to, and does not come back.
  void SaidGoodbye(const Incarnation& id, const std::string& name) {
    if (goodbyes_.size() < kMaxWorkers) goodbyes_[name] = id;
    to_hear_.erase(id);
    may_return_.erase(id);
  }
  // Its process will end, or has.
  void ReportedError(const std::string& name) { reported_error_.insert(name); }
  // A supervisor saw the process of this name end; `connected`: whose session has not ended yet. Returns whether that
  // process had reported an error.
  bool Exited(const std::string& name, const std::optional<Incarnation>& connected, absl::Time now) {
    if (exited_.size() < kMaxWorkers) exited_[name] = now;
    std::erase_if(to_hear_, [&](const auto& entry) { return entry.second == name && entry.first != connected; });
    std::erase_if(may_return_, [&](const auto& entry) { return entry.second.name == name; });
    return reported_error_.erase(name) != 0;
  }

  // When its process was seen to end, unless another one came since.
  std::optional<absl::Time> ExitedAt(const std::string& name) const {
    const auto found = exited_.find(name);
    return found == exited_.end() ? std::nullopt : std::optional(found->second);
  }
  // Why those are gone that are, by name.
  const std::map<std::string, std::string>& reasons() const { return reasons_; }
  // When the last one was lost that may hold what nobody has saved.
  absl::Time holder_lost() const { return holder_lost_; }
  uint64_t losses() const { return losses_; }
  uint64_t preemptions() const { return preemptions_; }

  // ---- the end of the job
  // This worker is to hear of it, unless it has said goodbye or its process is known to end anyway.
  void MustHear(const Incarnation& id, const std::string& name) {
    const auto goodbye = goodbyes_.find(name);
    if (goodbye != goodbyes_.end() && goodbye->second == id) return;
    if (exited_.count(name) == 0 && reported_error_.count(name) == 0) to_hear_[id] = name;
  }
  void IsTold(const Incarnation& id, const std::string& name) { to_hear_[id] = name; }
  bool AllHeard() const { return to_hear_.empty(); }
  // Those that were lost before `then` have given up by now.
  void GiveUpBefore(absl::Time then) {
    std::erase_if(may_return_, [&](const auto& entry) { return entry.second.since < then; });
  }
  bool MayReturn(const Incarnation& id) const { return may_return_.contains(id); }
  bool NobodyMayReturn() const { return may_return_.empty(); }

  // The chief was paused for so long: what it heard before is as fresh as it was.
  void ShiftDeadlines(absl::Duration gap) {
    for (auto& [name, when] : exited_) when += gap;
    for (auto& [id, lost] : may_return_) lost.since += gap;
    holder_lost_ += gap;
  }

 private:
  struct Lost {
    std::string name;
    absl::Time since;
  };

  std::map<std::string, std::string> reasons_;   // name → why, for messages
  std::map<std::string, absl::Time> exited_;     // names whose process a supervisor saw end, and when it said so
  std::map<std::string, Incarnation> goodbyes_;  // by name
  std::set<std::string> reported_error_;         // names
  std::map<Incarnation, Lost> may_return_;       // lost their sessions, and were not seen to end
  std::map<Incarnation, std::string> to_hear_;   // of the end, with their names
  absl::Time holder_lost_ = absl::InfinitePast();
  uint64_t losses_ = 0;
  uint64_t preemptions_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_DEPARTURES_H_
