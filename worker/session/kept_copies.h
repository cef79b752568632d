// The list of copies of audited states that a worker keeps in memory, to return to quickly if replicas differ (rule
// 22), and which of them to drop. The copies themselves are in a SnapshotStore.
//
// Threading: owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_KEPT_COPIES_H_
#define LOCKSTEP_WORKER_SESSION_KEPT_COPIES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/ids.h"
#include "common/protocol/kept_state.h"
#include "common/protocol/messages.h"
#include "worker/session/events.h"
#include "worker/session/keep_policy.h"

namespace lockstep::worker {

class KeptCopies {
 public:
  struct Copy {
    SnapshotId id;  // its name when it was taken
    KeptState state;
    EvaluationProgress progress;
  };

  // Whether there is enough memory for copies.
  void Allow(bool may_keep) { may_keep_ = may_keep; }
  bool IsDue(absl::Time now) const { return may_keep_ && policy_.IsDue(now); }

  // A copy begins. If there are kMaxKeptStates already, removes the oldest and returns it, to be dropped.
  std::optional<SnapshotId> Begin(absl::Time now);
  // The digest of the state of `lineage` and `progress` was computed, and perhaps a copy was kept.
  void Note(const DigestComputed& event, const Lineage& lineage, const EvaluationProgress& progress);

  // The states to which the chief may return, oldest first.
  std::vector<KeptState> States() const;
  // Null if there is no such copy.
  const Copy* Find(const Position& position, const Digest& digest) const;
  const Copy* Find(const SnapshotId& id) const;

  void Remove(const SnapshotId& id);
  // Removes all and returns them.
  std::vector<SnapshotId> TakeAll();
  // The job returned to `step` and continues as `lineage`. Copies up to that step belong to it too, since all replicas
  // agreed on them. Removes and returns the later ones.
  std::vector<SnapshotId> GoBackTo(uint64_t step, const Lineage& lineage);

 private:
  std::vector<Copy> copies_;  // oldest first; at most kMaxKeptStates
  bool may_keep_ = false;
  KeepPolicy policy_;
  absl::Time begin_;  // of the copy in progress
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_KEPT_COPIES_H_
