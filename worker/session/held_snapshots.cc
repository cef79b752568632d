#include "worker/session/held_snapshots.h"

#include <algorithm>
#include <utility>

namespace lockstep::worker {

HeldSnapshots::Snapshot* HeldSnapshots::Find(const Lineage& lineage, uint64_t step) {
  for (Snapshot& snapshot : snapshots_) {
    if (snapshot.lineage == lineage && snapshot.step == step) return &snapshot;
  }
  return nullptr;
}

bool HeldSnapshots::Holds(const SnapshotId& id) const {
  return std::any_of(snapshots_.begin(), snapshots_.end(), [&](const Snapshot& held) { return held.id == id; });
}

std::optional<HeldSnapshots::Snapshot> HeldSnapshots::Add(Snapshot snapshot) {
  std::optional<Snapshot> oldest;
  if (snapshots_.size() >= kMaxHeldSnapshots) {
    oldest = std::move(snapshots_.front());
    snapshots_.erase(snapshots_.begin());
  }
  snapshots_.push_back(std::move(snapshot));
  return oldest;
}

bool HeldSnapshots::Remove(const SnapshotId& id) {
  return std::erase_if(snapshots_, [&](const Snapshot& held) { return held.id == id; }) != 0;
}

}  // namespace lockstep::worker
