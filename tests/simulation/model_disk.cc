#include "tests/simulation/model_disk.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/simulation/model_store.h"

namespace lockstep::simulation {

std::unique_ptr<ChiefStore> ModelDisk::NewLife(ProcessId process) {
  return std::make_unique<ModelStore>(cluster_, this, process);
}

void ModelDisk::FenceOlder(Term term) { staging_.erase(staging_.begin(), staging_.lower_bound(term)); }

std::vector<Manifest> ModelDisk::Scan(Term term) {
  newest_scan_ = std::max(newest_scan_, term);
  if (repair_.has_value()) SetAsideNewer();
  std::vector<Manifest> accepted;
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    if (it->second.set_aside) continue;
    // What this chief builds on must be durable, also where the one that renamed it died before it synced.
    it->second.synced = true;
    accepted.push_back(it->second);
  }
  oracle_->Scanned(term, accepted.empty() ? -1 : static_cast<int64_t>(accepted.front().snapshot.step));
  return accepted;
}

ModelDisk::PublishResult ModelDisk::Publish(Term term, Manifest manifest) {
  if (!HasStaging(term)) return PublishResult::kFenced;
  const uint64_t step = manifest.snapshot.step;
  const auto found = checkpoints_.find(step);
  if (found != checkpoints_.end() && !found->second.set_aside &&
      found->second.snapshot.digest == manifest.snapshot.digest) {
    return PublishResult::kOk;
  }
  manifest.term = term;
  // What an older term publishes after a newer one has made its list is on no list.
  manifest.set_aside = term < newest_scan_;
  oracle_->Published(term, manifest.snapshot, DigestText(manifest.state), !manifest.set_aside);
  checkpoints_[step] = std::move(manifest);
  return PublishResult::kOk;
}

void ModelDisk::SyncPublished(const SnapshotId& snapshot) {
  const auto found = checkpoints_.find(snapshot.step);
  if (found != checkpoints_.end()) found->second.synced = true;
}

void ModelDisk::Amend(const SnapshotId& snapshot, const EvaluationLedger& ledger) {
  const auto found = checkpoints_.find(snapshot.step);
  if (found == checkpoints_.end() || found->second.snapshot != snapshot) {
    return oracle_->Violation(absl::StrCat("step ", snapshot.step, " is amended, but not published"));
  }
  found->second.evaluated = true;
  found->second.ledger = ledger;
}

void ModelDisk::Retain(size_t keep, const EvaluationLedger* ledger, uint64_t audit_floor) {
  std::set<uint64_t> needed;  // steps
  if (ledger != nullptr) needed.insert(ledger->best_step);
  for (const Manifest* const audited : {NewestAudited(), NewestAudited(audit_floor)}) {
    if (audited == nullptr) continue;
    needed.insert(audited->snapshot.step);
    if (ledger == nullptr) continue;
    needed.insert(audited->ledger.best_step);
    auto above = checkpoints_.upper_bound(audited->snapshot.step);
    while (above != checkpoints_.end() && above->second.set_aside) ++above;
    if (above != checkpoints_.end()) needed.insert(above->first);
  }
  // What was set aside counts for nothing, and nobody removes it.
  size_t newer =
      std::count_if(checkpoints_.begin(), checkpoints_.end(), [](const auto& e) { return !e.second.set_aside; });
  for (auto it = checkpoints_.begin(); it != checkpoints_.end();) {
    if (it->second.set_aside) {
      ++it;
      continue;
    }
    const bool old = newer > keep && newer > 1;
    --newer;
    it = old && needed.count(it->first) == 0 ? checkpoints_.erase(it) : std::next(it);
  }
}

uint64_t ModelDisk::OldestAudited() const {
  for (const auto& [step, manifest] : checkpoints_) {
    if (!manifest.set_aside && manifest.audited) return step;
  }
  return 0;
}

const Manifest* ModelDisk::NewestAudited(uint64_t up_to) const {
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    if (it->first <= up_to && !it->second.set_aside && it->second.audited) return &it->second;
  }
  return nullptr;
}

const Manifest* ModelDisk::BranchOff(const Lineage& lineage, uint64_t found_at, const std::vector<std::string>& hosts) {
  if (lineage_ == lineage) return At(branched_at_);
  const Manifest* const audited = NewestAudited(found_at);
  if (audited == nullptr) return nullptr;
  oracle_->WentBack(audited->snapshot.lineage, lineage, audited->state);
  lineage_ = lineage;
  branched_at_ = audited->snapshot.step;
  repair_ = chief::PastRepair{found_at, hosts};
  return audited;
}

uint64_t ModelDisk::SetAsideNewer() {
  uint64_t lowest = 0;
  for (auto& [step, manifest] : checkpoints_) {
    if (step <= branched_at_ || JobLineage(manifest.snapshot.lineage) == lineage_) continue;
    manifest.set_aside = true;
    if (lowest == 0) lowest = step;
  }
  return lowest;
}

void ModelDisk::MachineCrash(Random& random) {
  for (auto it = checkpoints_.begin(); it != checkpoints_.end();) {
    it = !it->second.synced && random.Chance(500) ? checkpoints_.erase(it) : std::next(it);
  }
}

std::optional<ReplicaState> ModelDisk::Load(const SnapshotId& snapshot) const {
  const auto found = checkpoints_.find(snapshot.step);
  if (found == checkpoints_.end() || found->second.set_aside || !(found->second.snapshot.digest == snapshot.digest)) {
    return std::nullopt;
  }
  return found->second.state;
}

const Manifest* ModelDisk::Newest() const {
  for (auto it = checkpoints_.rbegin(); it != checkpoints_.rend(); ++it) {
    if (!it->second.set_aside) return &it->second;
  }
  return nullptr;
}

const Manifest* ModelDisk::At(uint64_t step) const {
  const auto found = checkpoints_.find(step);
  return found == checkpoints_.end() ? nullptr : &found->second;
}

std::optional<StoredCheckpoint> ModelDisk::FindNewest() const {
  const Manifest* const newest = Newest();
  return newest == nullptr ? std::nullopt : std::optional<StoredCheckpoint>(*newest);
}

std::optional<StoredCheckpoint> ModelDisk::FindAt(uint64_t step) const {
  const Manifest* const found = At(step);
  return found == nullptr ? std::nullopt : std::optional<StoredCheckpoint>(*found);
}

}  // namespace lockstep::simulation
