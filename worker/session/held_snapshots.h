// The list of snapshots that a worker holds for the chief until their saves end, and which one to drop. The states
// themselves are in the SnapshotStore.
//
// Threading: owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_HELD_SNAPSHOTS_H_
#define LOCKSTEP_WORKER_SESSION_HELD_SNAPSHOTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::worker {

class HeldSnapshots {
 public:
  struct Snapshot {
    Lineage lineage;
    uint64_t step = 0;
    SnapshotCause cause = SnapshotCause::kDue;
    Generation generation;
    EvaluationLedger ledger;
    std::optional<SnapshotId> id;  // once its digest is known
  };

  bool empty() const { return snapshots_.empty(); }
  // Oldest first; at most kMaxHeldSnapshots.
  const std::vector<Snapshot>& all() const { return snapshots_; }
  // Null if none is held.
  Snapshot* Find(const Lineage& lineage, uint64_t step);
  bool Holds(const SnapshotId& id) const;

  // Adds a snapshot. If there are too many, removes and returns the oldest one.
  std::optional<Snapshot> Add(Snapshot snapshot);
  // False: it was not held.
  bool Remove(const SnapshotId& id);

 private:
  std::vector<Snapshot> snapshots_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HELD_SNAPSHOTS_H_
