#include "worker/session/kept_copies.h"

#include <algorithm>

namespace lockstep::worker {

std::optional<SnapshotId> KeptCopies::Begin(absl::Time now) {
  begin_ = now;
  if (copies_.size() < kMaxKeptStates) return std::nullopt;
  const SnapshotId oldest = copies_.front().id;
  copies_.erase(copies_.begin());
  return oldest;
}

void KeptCopies::Note(const DigestComputed& event, const Lineage& lineage, const EvaluationProgress& progress) {
  if (!event.kept) {
    may_keep_ = may_keep_ && !event.keep_failed;
    return;
  }
  policy_.Took(begin_, event.took);
  const SnapshotId id{lineage, event.position.step, event.digest};
  if (Find(id) != nullptr) return;
  copies_.push_back(Copy{id, KeptState{lineage, event.position, event.digest}, progress});
}

std::vector<KeptState> KeptCopies::States() const {
  std::vector<KeptState> states;
  for (const Copy& copy : copies_) states.push_back(copy.state);
  return states;
}

const KeptCopies::Copy* KeptCopies::Find(const Position& position, const Digest& digest) const {
  for (const Copy& copy : copies_) {
    if (copy.state.position == position && copy.state.digest == digest) return &copy;
  }
  return nullptr;
}

const KeptCopies::Copy* KeptCopies::Find(const SnapshotId& id) const {
  for (const Copy& copy : copies_) {
    if (copy.id == id) return &copy;
  }
  return nullptr;
}

void KeptCopies::Remove(const SnapshotId& id) {
  std::erase_if(copies_, [&](const Copy& copy) { return copy.id == id; });
}

std::vector<SnapshotId> KeptCopies::TakeAll() {
  std::vector<SnapshotId> all;
  for (const Copy& copy : copies_) all.push_back(copy.id);
  copies_.clear();
  return all;
}

std::vector<SnapshotId> KeptCopies::GoBackTo(uint64_t step, const Lineage& lineage) {
  std::vector<SnapshotId> later;
  for (Copy& copy : copies_) {
    if (copy.state.position.step > step) later.push_back(copy.id);
    copy.state.lineage = lineage;
  }
  std::erase_if(copies_, [&](const Copy& copy) { return copy.state.position.step > step; });
  return later;
}

}  // namespace lockstep::worker
