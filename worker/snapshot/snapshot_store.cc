#include "worker/snapshot/snapshot_store.h"

#include <utility>

#include "common/status/status_macros.h"

namespace lockstep::worker {

absl::Status SnapshotStore::Reserve(const StateLayout& layout, int count) {
  std::vector<std::unique_ptr<ReplicaState>> buffers;
  for (int i = 0; i < count; ++i) {
    LS_ASSIGN_OR_RETURN(ReplicaState buffer, ReplicaState::Create(layout));
    buffers.push_back(std::make_unique<ReplicaState>(std::move(buffer)));
  }
  MutexLock lock(&pool_->mutex);
  pool_->free = std::move(buffers);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const ReplicaState>> SnapshotStore::Take(const ReplicaState& state) {
  std::unique_ptr<ReplicaState> buffer;
  {
    MutexLock lock(&pool_->mutex);
    if (!pool_->free.empty()) {
      buffer = std::move(pool_->free.back());
      pool_->free.pop_back();
    }
  }
  if (buffer == nullptr) {
    LS_ASSIGN_OR_RETURN(ReplicaState fresh, ReplicaState::Create(state.layout()));
    buffer = std::make_unique<ReplicaState>(std::move(fresh));
  }
  buffer->CopyFrom(state);
  return std::shared_ptr<const ReplicaState>(buffer.release(), [pool = pool_](const ReplicaState* done) {
    MutexLock lock(&pool->mutex);
    pool->free.emplace_back(const_cast<ReplicaState*>(done));
  });
}

void SnapshotStore::Name(const SnapshotId& id, std::shared_ptr<const ReplicaState> snapshot) {
  MutexLock lock(&mutex_);
  held_[id] = std::move(snapshot);
}

std::shared_ptr<const ReplicaState> SnapshotStore::Find(const SnapshotId& id) const {
  MutexLock lock(&mutex_);
  const auto found = held_.find(id);
  return found == held_.end() ? nullptr : found->second;
}

void SnapshotStore::Drop(const SnapshotId& id) {
  std::shared_ptr<const ReplicaState> dropped;
  MutexLock lock(&mutex_);
  const auto found = held_.find(id);
  if (found == held_.end()) return;
  dropped = std::move(found->second);
  held_.erase(found);
}

}  // namespace lockstep::worker
