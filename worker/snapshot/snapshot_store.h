// Stage 7: consistent copies of the state at step boundaries, held in memory until the chief has stored their shares.
// The engine thread starts the copy between two steps; its digest is computed while training continues.
//
//   1 taken ──Wait──▶ 2 copied ──Name──▶ 3 held ──Drop──▶ 4 buffer reused once its last reader is done
//
// Invariants
//   * A snapshot's bytes never change once Wait has returned.
//   * Snapshots use the reserved buffers; further memory is allocated only if more snapshots are alive at once.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_
#define LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/digest/state_digest.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "worker/device/device.h"
#include "worker/step/host_state.h"
#include "worker/step/replica_state.h"

namespace lockstep::worker {

// A copy of the state whose transfer from the device may be in progress.
struct Snapshot {
  std::shared_ptr<const HostState> state;
  std::shared_ptr<device::Event> copied;  // null: the transfer is done

  // Blocks until `state` may be read; the first failure of the device. REQUIRES: called before `state` is dropped.
  absl::Status Wait() const { return copied == nullptr ? absl::OkStatus() : copied->Wait(); }
};

// A snapshot with a name.
struct HeldSnapshot {
  std::shared_ptr<const HostState> state;       // null: no snapshot has this name
  std::shared_ptr<const StateDigests> digests;  // of `state`, from which the name's digest follows; null: not needed
};

class SnapshotStore {
 public:
  SnapshotStore() : pool_(std::make_shared<Pool>()) {}

  // Allocates `count` buffers for copies of `state`, with all pages touched, so that Take costs only the copy. Replaces
  // earlier reservations.
  absl::Status Reserve(const ReplicaState& state, int count);

  // Starts a copy of `state`. ResourceExhausted when memory is exhausted. REQUIRES: Reserve was called with a state of
  // the same layout.
  absl::StatusOr<Snapshot> Take(ReplicaState& state);

  // Holds `snapshot` under its name until Drop. REQUIRES: Snapshot::Wait returned.
  void Name(const SnapshotId& id, HeldSnapshot snapshot);
  // Returns the snapshot of that name; without a state if there is none.
  HeldSnapshot Find(const SnapshotId& id) const;
  void Drop(const SnapshotId& id);

 private:
  struct Pool {
    Mutex mutex;
    std::vector<std::unique_ptr<HostState>> free GUARDED_BY(mutex);
  };

  const std::shared_ptr<Pool> pool_;  // snapshots return their buffers to it, even if they outlive the store
  mutable Mutex mutex_;
  std::map<SnapshotId, HeldSnapshot> held_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_
