// Stage 7: consistent copies of the state at step boundaries, held in memory until their shares are at the chief. The
// engine thread starts the copy between two steps; its digest is computed while training goes on.
//
//   1 taken ──Wait──▶ 2 copied ──Name──▶ 3 held ──Drop──▶ 4 free again once nobody reads it
//
// Invariants
//   * A snapshot's bytes never change once Wait has returned.
//   * Memory is that of the buffers reserved up front, unless more snapshots than that are alive at once.
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

// A copy that may still be on its way from the device.
struct Snapshot {
  std::shared_ptr<const HostState> state;
  std::shared_ptr<device::Event> copied;  // null: it is done

  // Blocks until `state` may be read; the first failure of the device. REQUIRES: called before `state` is dropped.
  absl::Status Wait() const { return copied == nullptr ? absl::OkStatus() : copied->Wait(); }
};

// A snapshot that is held under its name.
struct HeldSnapshot {
  std::shared_ptr<const HostState> state;       // null: there is none
  std::shared_ptr<const StateDigests> digests;  // of `state`, which make the name's; null: nobody asks for them
};

class SnapshotStore {
 public:
  SnapshotStore() : pool_(std::make_shared<Pool>()) {}

  // Makes `count` buffers for copies of `state` ready, every page touched, so that Take costs a copy only. Replaces
  // those reserved before.
  absl::Status Reserve(const ReplicaState& state, int count);

  // Copies `state`. ResourceExhausted when memory does not suffice. REQUIRES: Reserve for a state of the same layout.
  absl::StatusOr<Snapshot> Take(ReplicaState& state);

  // Holds `snapshot`, which was waited for, under its name until Drop.
  void Name(const SnapshotId& id, HeldSnapshot snapshot);
  // Without a state when none of that name is held.
  HeldSnapshot Find(const SnapshotId& id) const;
  void Drop(const SnapshotId& id);

 private:
  struct Pool {
    Mutex mutex;
    std::vector<std::unique_ptr<HostState>> free GUARDED_BY(mutex);
  };

  const std::shared_ptr<Pool> pool_;  // snapshots return their buffers to it, also when they outlive the store
  mutable Mutex mutex_;
  std::map<SnapshotId, HeldSnapshot> held_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SNAPSHOT_SNAPSHOT_STORE_H_
