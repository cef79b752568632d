// The step up to which audits are conclusive: every worker that may still come back took part in them (rule 22). The
// newest audited checkpoint up to this step is kept, whatever the retention policy says.
//
// A worker may have been corrupted before it was cut off, and may not have reported its digests since. The others
// continue with the effect of its gradients and agree with each other, so their later audits prove nothing until that
// worker is back or is known to have ended. A chief does not know which workers its predecessor had lost, so it begins
// with one such entry.
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
  // No worker is out of reach: the newest audited checkpoint suffices.
  static constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();
  static constexpr size_t kMaxParted = 4096;
  static constexpr absl::Duration kMargin = absl::Minutes(1);

  // `oldest`: the step of the oldest audited checkpoint that this chief found.
  explicit AuditFloor(uint64_t oldest) : base_(oldest) {}
  // Call if this chief has a predecessor, whose lost workers are not known.
  void Begin(absl::Time now) { parted_[Incarnation()] = {base_, now}; }

  // A generation of `members` follows one of `before`, those processes of it that have not ended. `audited`: the newest
  // step that all of `before` had compared; 0: none.
  void Forms(const std::set<Incarnation>& before, const std::set<Incarnation>& members, uint64_t audited,
             absl::Time now) {
    for (const Incarnation& each : before) {
      if (members.contains(each) || parted_.size() >= kMaxParted) continue;
      parted_.try_emplace(each, Parted{std::max(audited, base_), now});
    }
  }
  // All of `members` passed an audit: they have reported everything that they had to.
  void Passed(const std::set<Incarnation>& members) {
    std::erase_if(parted_, [&](const auto& entry) { return members.contains(entry.first); });
  }
  void Ended(const Incarnation& process) { parted_.erase(process); }
  // The job went back to `checkpoint`: later states no longer count.
  void WentBack(uint64_t checkpoint) {
    base_ = checkpoint;
    parted_.clear();
  }
  // A worker that reaches no chief for `patience` exits; it is taken for gone kMargin later.
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
