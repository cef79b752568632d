#include "worker/snapshot/snapshot_store.h"

#include <utility>

#include "common/status/status_macros.h"

namespace lockstep::worker {

absl::Status SnapshotStore::Reserve(const ReplicaState& state, int count) {
  std::vector<std::unique_ptr<HostState>> buffers;
  for (int i = 0; i < count; ++i) {
    LS_ASSIGN_OR_RETURN(HostState buffer, state.NewCopy());
    buffers.push_back(std::make_unique<HostState>(std::move(buffer)));
  }
  MutexLock lock(&pool_->mutex);
  pool_->free = std::move(buffers);
  return absl::OkStatus();
}

absl::StatusOr<Snapshot> SnapshotStore::Take(ReplicaState& state) {
  std::unique_ptr<HostState> buffer;
  {
    MutexLock lock(&pool_->mutex);
    if (!pool_->free.empty()) {
      buffer = std::move(pool_->free.back());
      pool_->free.pop_back();
    }
  }
  if (buffer == nullptr) {
    LS_ASSIGN_OR_RETURN(HostState fresh, state.NewCopy());
    buffer = std::make_unique<HostState>(std::move(fresh));
  }
  LS_ASSIGN_OR_RETURN(std::shared_ptr<device::Event> copied, state.CopyTo(*buffer));
  const auto give_back = [pool = pool_](const HostState* done) {
    MutexLock lock(&pool->mutex);
    pool->free.emplace_back(const_cast<HostState*>(done));
  };
  return Snapshot{std::shared_ptr<const HostState>(buffer.release(), give_back), std::move(copied)};
}

void SnapshotStore::Name(const SnapshotId& id, HeldSnapshot snapshot) {
  MutexLock lock(&mutex_);
  held_[id] = std::move(snapshot);
}

HeldSnapshot SnapshotStore::Find(const SnapshotId& id) const {
  MutexLock lock(&mutex_);
  const auto found = held_.find(id);
  return found == held_.end() ? HeldSnapshot() : found->second;
}

void SnapshotStore::Drop(const SnapshotId& id) {
  HeldSnapshot dropped;
  MutexLock lock(&mutex_);
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  dropped = std::move(found->second);
  held_.erase(found);
}

}  // namespace lockstep::worker
