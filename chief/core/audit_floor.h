// The step up to which audits passed with everybody that may still come back (rule 22): the newest audited checkpoint
// up to there stays, whatever retention says.
//
// A worker that a generation went on without may have been hit before it was cut off, and may not have told its digests
// since. The others go on from what its gradients made, and agree about it: their audits say nothing until it has come
// back, or is known to be gone. A chief does not know whom the one before it had lost, so it begins with such an entry.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_AUDIT_FLOOR_H_
#define LOCKSTEP_CHIEF_CORE_AUDIT_FLOOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class AuditFloor {
 public:
  // Nobody is out of reach: the newest audited checkpoint will do.
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  static constexpr size_t kMaxParted = 4096;
  static constexpr absl::Duration kMargin = absl::Minutes(1);

  // `oldest`: the step of the oldest audited checkpoint that this chief found.
  explicit AuditFloor(uint64_t oldest) : base_(oldest) {}
  // There was a chief before this one.
  void Begin(absl::Time now) { parted_[Incarnation()] = {base_, now}; }

  // A generation begins with `members`, after one with `before`, of which those count that have not ended. `audited`:
  // the newest step that all of those had compared; 0: none.
  void Forms(const std::set<Incarnation>& before, const std::set<Incarnation>& members, uint64_t audited,
             absl::Time now) {
    for (const Incarnation& each : before) {
      if (members.contains(each) || parted_.size() >= kMaxParted) continue;
      parted_.try_emplace(each, Parted{std::max(audited, base_), now});
    }
  }
  // An audit passed with all of them: whatever they had to tell of before, they have told.
  void Passed(const std::set<Incarnation>& members) {
    std::erase_if(parted_, [&](const auto& entry) { return members.contains(entry.first); });
  }
  void Ended(const Incarnation& process) { parted_.erase(process); }
  // The job went back to a checkpoint: states of before mean nothing any more.
  void WentBack(uint64_t checkpoint) {
    base_ = checkpoint;
    parted_.clear();
  }
  // Who reaches no chief for `patience` ends by itself; kMargin later it has.
  void GiveUp(absl::Time now, absl::Duration patience) {
    std::erase_if(parted_, [&](const auto& entry) { return now - entry.second.since > patience + kMargin; });
  }

  uint64_t step() const {
    uint64_t lowest = kNone;
    for (const auto& [who, parted] : parted_) lowest = std::min(lowest, parted.audited);
    return lowest;
  }

  void ShiftDeadlines(absl::Duration gap) {
    for (auto& [who, parted] : parted_) parted.since += gap;
  }

 private:
  struct Parted {
    uint64_t audited = 0;
    absl::Time since;
  };

  uint64_t base_;
  std::map<Incarnation, Parted> parted_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_FLOOR_H_
