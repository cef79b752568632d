// What is known of workers that left the roster: why they left, whether a supervisor saw their processes end, which may
// still come back, and which must hear of the job's end before the chief exits.
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
  // A worker connected. If its name belonged to another process, that one is dead and will not ask again.
  void Came(const Incarnation& id, const std::string& name) {
    reasons_.erase(name);
    reported_error_.erase(name);
    exited_.erase(name);
    goodbyes_.erase(name);
    std::erase_if(may_return_, [&](const auto& entry) { return entry.second.name == name || entry.first == id; });
    std::erase_if(to_hear_, [&](const auto& entry) { return entry.second == name && entry.first != id; });
  }
  // A worker left the roster. `holds`: it may hold a state that is not saved.
  void Went(const Incarnation& id, const std::string& name, WorkerChange change, bool holds, absl::Time now) {
    const bool ended = exited_.count(name) != 0;
    if (ended) to_hear_.erase(id);
    if (change != WorkerChange::kLost) return;
    if (holds && !ended) holder_lost_ = now;
    if (!ended && may_return_.size() < kMaxWorkers) may_return_[id] = {name, now};
  }
  // Updates the totals and the reason that people see.
  void Count(const std::string& name, WorkerChange change, const std::string& reason) {
    losses_ += change == WorkerChange::kLost ? 1 : 0;
    preemptions_ += change == WorkerChange::kPreempted ? 1 : 0;
    if (reasons_.size() < kMaxWorkers) reasons_[name] = reason;
  }
  // The worker announced its end itself: it needs no message and does not come back.
  void SaidGoodbye(const Incarnation& id, const std::string& name) {
    if (goodbyes_.size() < kMaxWorkers) goodbyes_[name] = id;
    to_hear_.erase(id);
    may_return_.erase(id);
  }
  // The worker reported an error: its process will end, or has ended.
  void ReportedError(const std::string& name) { reported_error_.insert(name); }
  // A supervisor saw the process of this name end. `connected`: the process whose session is still open, if any.
  // Returns whether the ended process had reported an error.
  bool Exited(const std::string& name, const std::optional<Incarnation>& connected, absl::Time now) {
    if (exited_.size() < kMaxWorkers) exited_[name] = now;
    std::erase_if(to_hear_, [&](const auto& entry) { return entry.second == name && entry.first != connected; });
    std::erase_if(may_return_, [&](const auto& entry) { return entry.second.name == name; });
    return reported_error_.erase(name) != 0;
  }

  // When the process of this name was seen to end; nullopt if it was not or a new one connected since.
  std::optional<absl::Time> ExitedAt(const std::string& name) const {
    const auto found = exited_.find(name);
    return found == exited_.end() ? std::nullopt : std::optional(found->second);
  }
  // The reasons why workers are gone, by name.
  const std::map<std::string, std::string>& reasons() const { return reasons_; }
  // When a worker was last lost that may hold a state that is not saved.
  absl::Time holder_lost() const { return holder_lost_; }
  uint64_t losses() const { return losses_; }
  uint64_t preemptions() const { return preemptions_; }

  // ---- the end of the job
  // This worker must hear of the end, unless it has said goodbye or its process is known to end anyway.
  void MustHear(const Incarnation& id, const std::string& name) {
    const auto goodbye = goodbyes_.find(name);
    if (goodbye != goodbyes_.end() && goodbye->second == id) return;
    if (exited_.count(name) == 0 && reported_error_.count(name) == 0) to_hear_[id] = name;
  }
  void IsTold(const Incarnation& id, const std::string& name) { to_hear_[id] = name; }
  bool AllHeard() const { return to_hear_.empty(); }
  // Workers that were lost before `then` have given up by now.
  void GiveUpBefore(absl::Time then) {
    std::erase_if(may_return_, [&](const auto& entry) { return entry.second.since < then; });
  }
  bool MayReturn(const Incarnation& id) const { return may_return_.contains(id); }
  bool NobodyMayReturn() const { return may_return_.empty(); }

  // The chief was paused for `gap`: moves all instants, so that nothing ages by the pause.
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

  std::map<std::string, std::string> reasons_;   // by name, for messages
  std::map<std::string, absl::Time> exited_;     // by name: when a supervisor reported the end of the process
  std::map<std::string, Incarnation> goodbyes_;  // by name
  std::set<std::string> reported_error_;         // names
  std::map<Incarnation, Lost> may_return_;       // lost their sessions and were not seen to end
  std::map<Incarnation, std::string> to_hear_;   // must hear of the end; with their names
  absl::Time holder_lost_ = absl::InfinitePast();
  uint64_t losses_ = 0;
  uint64_t preemptions_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_DEPARTURES_H_
