// The workers and hosts that `lockstep drain` keeps away from the job until the drain is lifted. A drain names a worker
// or a host; a name that is both means both.
//
// A process that asks for no name, on the host of a worker that is drained by name, is taken for that worker's
// successor: nothing distinguishes the two.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_DRAINS_H_
#define LOCKSTEP_CHIEF_CORE_DRAINS_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/limits.h"
#include "chief/core/policy.h"

namespace lockstep::chief {

class Drains {
 public:
  Drains() = default;
  // `stored`: the drains of an earlier chief.
  explicit Drains(const std::vector<Drain>& stored) {
    for (const Drain& drain : stored) {
      if (drains_.size() < kMaxWorkers) drains_[drain.target].host = drain.host;
      if (!drain.host.empty()) Saw(drain.target, drain.host);
    }
  }

  // A worker of this name is on `host`.
  void Saw(const std::string& name, const std::string& host) {
    if (host_of_.size() < kMaxWorkers || host_of_.count(name) != 0) host_of_[name] = host;
    const auto drain = drains_.find(name);
    if (drain != drains_.end()) drain->second.host = host;
  }
  // Whether a worker or host of this name was seen, or is drained.
  bool Knows(const std::string& target) const {
    return drains_.count(target) != 0 || std::any_of(host_of_.begin(), host_of_.end(), [&](const auto& entry) {
             return entry.first == target || entry.second == target;
           });
  }
  // All workers that were seen, sorted, for people: "worker-0 on host-a".
  std::vector<std::string> Known() const {
    std::vector<std::string> known;
    for (const auto& [name, host] : host_of_) known.push_back(name + " on " + host);
    return known;
  }

  // Keeps `target` away; the workers that it names must be gone at `until`. An existing drain takes the new time.
  // Returns false if there are too many drains.
  bool Add(const std::string& target, absl::Time until) {
    if (drains_.size() >= kMaxWorkers && drains_.count(target) == 0) return false;
    const auto seen = host_of_.find(target);
    Entry& entry = drains_[target];
    if (seen != host_of_.end()) entry.host = seen->second;
    entry.until = until;
    entry.refusal_said = false;
    return true;
  }
  bool Has(const std::string& target) const { return drains_.count(target) != 0; }
  void Lift(const std::string& target) { drains_.erase(target); }
  bool empty() const { return drains_.empty(); }

  // The target of the drain that applies to this worker; nullopt if none does. `name` is empty for a process that asks
  // for none.
  std::optional<std::string> Of(const std::string& name, const std::string& host) const {
    for (const auto& [target, entry] : drains_) {
      if (target == host || (!name.empty() && target == name) || (name.empty() && entry.host == host)) return target;
    }
    return std::nullopt;
  }
  // When this worker must be gone: the earliest time of its drains.
  absl::Time UntilOf(const std::string& name, const std::string& host) const {
    absl::Time until = absl::InfiniteFuture();
    for (const auto& [target, entry] : drains_) {
      if (target == host || target == name) until = std::min(until, entry.until);
    }
    return until;
  }
  // True for the first process that this drain turns away. A supervisor may start one process after the other, and
  // people hear of the first only.
  bool FirstRefusal(const std::string& target) { return !std::exchange(drains_[target].refusal_said, true); }

  std::vector<Drain> All() const {
    std::vector<Drain> all;
    for (const auto& [target, entry] : drains_) all.push_back({target, entry.host});
    return all;
  }
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (const auto& [target, entry] : drains_) targets.push_back(target);
    return targets;
  }

 private:
  struct Entry {
    std::string host;  // of the worker that the drain names; empty if it names none
    // An instant outside the job, such as when a machine is taken away: a pause of this chief does not move it.
    absl::Time until = absl::InfiniteFuture();
    bool refusal_said = false;
  };

  std::map<std::string, Entry> drains_;         // by target
  std::map<std::string, std::string> host_of_;  // of every worker seen
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_DRAINS_H_
