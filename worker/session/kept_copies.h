// Which copies of audited states a worker keeps in memory, for a way back that is short after replicas differed
// (rule 22). The copies themselves lie in the SnapshotStore; this says which of them to drop.
//
// Threading: thread-compatible; owned by SessionCore.
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
    SnapshotId id;  // as it was named when it was taken
    KeptState state;
    EvaluationProgress progress;
  };

  // Whether memory suffices for copies at all.
  void Allow(bool may_keep) { may_keep_ = may_keep; }
  bool IsDue(absl::Time now) const { return may_keep_ && policy_.IsDue(now); }

  // A copy is taken from now on. Returns the oldest one, to be dropped, where there are kMaxKeptStates.
  std::optional<SnapshotId> Begin(absl::Time now);
  // The digest of the state of `lineage` and `progress`, and perhaps a copy of that, is there.
  void Note(const DigestComputed& event, const Lineage& lineage, const EvaluationProgress& progress);

  // What the chief may ask to go back to. Oldest first.
  std::vector<KeptState> States() const;
  // Null where none is held.
  const Copy* Find(const Position& position, const Digest& digest) const;
  const Copy* Find(const SnapshotId& id) const;

  void Remove(const SnapshotId& id);
  // Forgets all, and returns them.
  std::vector<SnapshotId> TakeAll();
  // The job went back to `step` and calls what follows `lineage`: what was kept up to there is of that as well, since
  // all had it. Returns the later ones, which are forgotten.
  std::vector<SnapshotId> GoBackTo(uint64_t step, const Lineage& lineage);

 private:
  std::vector<Copy> copies_;  // oldest first; at most kMaxKeptStates
  bool may_keep_ = false;
  KeepPolicy policy_;
  absl::Time begin_;  // of the copy that is being taken
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_KEPT_COPIES_H_
