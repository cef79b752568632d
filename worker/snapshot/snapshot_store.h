// Stage 7: consistent copies of the state at step boundaries, held in memory until their shares are at the chief. The
// copy is made between two steps by the engine thread; its digest is computed while training goes on.
//
//   1 taken ──Name──▶ 2 held ──Drop──▶ 3 free again once nobody reads it
//
// Invariants
//   * A snapshot's bytes never change after Take returned.
//   * Memory is that of the buffers reserved up front, unless more snapshots than that are alive at once.
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_
#define LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "worker/step/replica_state.h"

namespace lockstep::worker {

class SnapshotStore {
 public:
  SnapshotStore() : pool_(std::make_shared<Pool>()) {}

  // Makes `count` buffers ready, every page touched, so that Take costs a copy only. Replaces those reserved before.
  absl::Status Reserve(const StateLayout& layout, int count);

  // Copies `state`. ResourceExhausted when memory does not suffice. REQUIRES: Reserve for the same layout.
  absl::StatusOr<std::shared_ptr<const ReplicaState>> Take(const ReplicaState& state);

  // Holds `snapshot` under its name until Drop.
  void Name(const SnapshotId& id, std::shared_ptr<const ReplicaState> snapshot);
  // Null when none of that name is held.
  std::shared_ptr<const ReplicaState> Find(const SnapshotId& id) const;
  void Drop(const SnapshotId& id);

 private:
  struct Pool {
    Mutex mutex;
    std::vector<std::unique_ptr<ReplicaState>> free GUARDED_BY(mutex);
  };

  const std::shared_ptr<Pool> pool_;  // snapshots return their buffers to it, also when they outlive the store
  mutable Mutex mutex_;
  std::map<SnapshotId, std::shared_ptr<const ReplicaState>> held_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_
