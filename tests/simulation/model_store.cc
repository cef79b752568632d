#include "tests/simulation/model_store.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/simulation/cluster.h"

namespace lockstep::simulation {

World& ModelStore::world() const { return *cluster_->world; }

absl::Status ModelStore::CheckTerm() const {
  if (disk_->HasStaging(term_)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("term ", disk_->highest_claim(), " has the job"));
}

absl::Status ModelStore::Check(DiskWrite write) {
  if (!disk_->refuses && disk_->refuses_once.erase(write) == 0) return absl::OkStatus();
  cluster_->Cover("the disk refuses");
  ++disk_->refused;
  return absl::ResourceExhaustedError("no space left");
}

// ---- a start --------------------------------------------------------------------------------------------------------

void ModelStore::TakeOver(std::function<void(absl::StatusOr<TakenOver>)> done) {
  taken_over_ = std::move(done);
  Continue(&ModelStore::Claim);
}

void ModelStore::Continue(void (ModelStore::*part)()) {
  Later([this, part] {
    if (!disk_->refuses) return (this->*part)();
    taken_over_(absl::ResourceExhaustedError("no space left"));
  });
}

void ModelStore::Claim() {
  term_ = disk_->ClaimTerm();
  Continue(&ModelStore::Stage);
}

void ModelStore::Stage() {
  disk_->CreateStaging(term_);
  Continue(&ModelStore::Fence);
}

void ModelStore::Fence() {
  disk_->FenceOlder(term_);
  Continue(&ModelStore::Recover);
}

void ModelStore::Recover() {
  if (!disk_->HasStaging(term_) || disk_->highest_claim() != term_) {
    return taken_over_(absl::AbortedError("a newer chief has the job"));
  }
  if (disk_->Scan(term_).empty()) {
    Manifest first;
    first.audited = true;
    first.state = InitialState(cluster_->settings.job);
    first.snapshot = SnapshotId{cluster_->settings.policy.lineage, 0, DigestText(first.state)};
    disk_->Publish(term_, first);
    disk_->SyncPublished(first.snapshot);
    cluster_->oracle->Committed(0);
  }
  taken_over_(FindAll());
}

TakenOver ModelStore::FindAll() const {
  const Manifest newest = *disk_->Newest();
  TakenOver found;
  chief::RecoveredState& recovered = found.recovered;
  recovered.term = term_;
  recovered.checkpoint = newest.snapshot;
  if (disk_->plan.has_value()) {
    recovered.plan_hash = disk_->plan->hash;
    recovered.data_digest = disk_->plan->data_digest;
  }
  recovered.trained_for = newest.trained_for;
  recovered.evaluated = newest.evaluated;
  recovered.ledger = newest.ledger;
  recovered.repair = disk_->repair();
  recovered.oldest_audited = disk_->OldestAudited();
  recovered.drains = disk_->drains;
  found.lineage = disk_->lineage().empty() ? cluster_->settings.policy.lineage : disk_->lineage();
  return found;
}

void ModelStore::LookForNewer(Done done) { done(CheckTerm()); }

void ModelStore::End(int code, std::function<void(int)> done) {
  // Its end is a record of the log, which one that was followed cannot append.
  done(disk_->highest_claim() > term_ ? 76 : code);
}

// ---- saves ----------------------------------------------------------------------------------------------------------

void ModelStore::OpenSave(const SnapshotId& id, uint32_t shares, Done failed) {
  saves_[id] = Save{shares, {}};
  // Opening makes directories; the shell tells of a failure by an event of its own.
  if (absl::Status refused = Check(DiskWrite::kOpen); !refused.ok()) {
    After(absl::ZeroDuration(), [refused, failed = std::move(failed)] { failed(refused); });
  }
}

void ModelStore::TakeShare(const IncomingShare& share, Done done) {
  const auto is_open = [this, id = share.snapshot, shares = share.shares] {
    const auto open = saves_.find(id);
    return open != saves_.end() && open->second.shares == shares;
  };
  if (share.torn && saves_.count(share.snapshot) > 0) return done(absl::CancelledError("the stream broke"));
  if (!is_open()) return done(absl::FailedPreconditionError("no such save is open"));
  Later([this, share, is_open, done = std::move(done)] {
    // The save may have been abandoned and opened again, for another number of shares.
    if (!is_open()) return done(absl::FailedPreconditionError("no such save is open"));
    absl::Status taken = CheckTerm();
    if (taken.ok()) taken = Check(DiskWrite::kShare);
    if (taken.ok()) saves_[share.snapshot].received[share.share] = share.state;
    done(taken);
  });
}

void ModelStore::FinishShares(const chief::StoreManifest& order, std::function<void(absl::StatusOr<Digest>)> done) {
  const auto open = saves_.find(order.snapshot);
  if (open == saves_.end() || open->second.received.size() != order.shares) {
    return done(absl::FailedPreconditionError("shares are missing"));
  }
  Manifest manifest;
  manifest.snapshot = order.snapshot;
  manifest.term = term_;
  manifest.plan_hash = order.plan_hash;
  manifest.audited = order.audited;
  manifest.audit_floor = order.audit_floor;
  manifest.evaluated = order.evaluated;
  manifest.ledger = order.ledger;
  manifest.trained_for = order.trained_for;
  manifest.state.step = open->second.received.at(0).step;
  for (int i = 0; i < kWeights; ++i) {
    manifest.state.weights[i] = open->second.received.at(i % order.shares).weights[i];
  }
  // Now and then a share has other bits than its sender meant, and no checksum on the way has noticed.
  if (world().random().Chance(10)) manifest.state.weights[world().random().Below(kWeights)] ^= 1;
  Later([this, manifest, done = std::move(done)] {
    if (absl::Status fenced = CheckTerm(); !fenced.ok()) return done(fenced);
    if (saves_.count(manifest.snapshot) == 0) return;
    if (absl::Status refused = Check(DiskWrite::kManifest); !refused.ok()) return done(refused);
    // Now and then the disk is full for one write.
    if (world().random().Chance(5)) return done(absl::ResourceExhaustedError("no space left"));
    manifests_[manifest.snapshot] = manifest;
    done(DigestText(manifest.state));
  });
}

void ModelStore::Publish(const SnapshotId& id, Done done) {
  const Manifest manifest = manifests_[id];
  if (cluster_->on_commit) cluster_->on_commit(process_);
  Later([this, manifest, done = std::move(done)] {
    if (absl::Status refused = Check(DiskWrite::kPublish); !refused.ok()) return done(refused);
    if (disk_->Publish(term_, manifest) == ModelDisk::PublishResult::kFenced) return done(CheckTerm());
    Later([this, manifest, done] {
      disk_->SyncPublished(manifest.snapshot);
      const Manifest* there = disk_->At(manifest.snapshot.step);
      if (there == nullptr) {  // lost when a machine went down: this one cannot make durable what is not there
        return done(absl::NotFoundError("no such directory"));
      }
      if (!there->set_aside) cluster_->oracle->Committed(manifest.snapshot.step);
      const bool keeps_best = cluster_->settings.policy.training.evaluation.keep_best;
      if (disk_->HasStaging(term_)) {
        disk_->Retain(cluster_->settings.keep_checkpoints, keeps_best ? &manifest.ledger : nullptr,
                      manifest.audit_floor);
      }
      saves_.erase(manifest.snapshot);
      manifests_.erase(manifest.snapshot);
      done(absl::OkStatus());
    });
  });
}

void ModelStore::Amend(const chief::AmendManifest& order, Done done) {
  Later([this, order, done = std::move(done)] {
    absl::Status amended = CheckTerm();
    if (amended.ok()) amended = Check(DiskWrite::kManifest);
    if (amended.ok() && world().random().Chance(5)) amended = absl::ResourceExhaustedError("no space left");
    if (amended.ok()) disk_->Amend(order.snapshot, order.ledger);
    done(amended);
  });
}

// ---- plans, drains, the way back ------------------------------------------------------------------------------------

void ModelStore::StorePlan(const chief::StorePlan& order, Done done) {
  Later([this, order, done = std::move(done)] {
    absl::Status stored = CheckTerm();
    if (stored.ok()) stored = Check(DiskWrite::kPlan);
    if (stored.ok()) disk_->plan = StoredPlan{order.plan_hash, order.plan, order.data_digest};
    done(stored);
  });
}

void ModelStore::StoreDrains(const std::vector<chief::Drain>& drains, Done done) {
  Later([this, drains, done = std::move(done), number = ++drain_writes_] {
    if (absl::Status fenced = CheckTerm(); !fenced.ok()) return done(fenced);
    const bool newest = number > drains_written_;
    drains_written_ = std::max(drains_written_, number);
    absl::Status stored;
    if (newest) stored = Check(DiskWrite::kDrains);
    if (newest && stored.ok()) disk_->drains = drains;
    done(stored);
  });
}

void ModelStore::Repair(const chief::RecordRepair& order,
                        std::function<void(absl::StatusOr<chief::RepairRecorded>)> done) {
  Later([this, order, done = std::move(done)] {
    absl::Status branched = CheckTerm();
    if (branched.ok()) branched = Check(DiskWrite::kRepair);
    if (!branched.ok()) return done(branched);
    if (disk_->BranchOff(order.lineage, order.found_at, order.hosts) == nullptr) {
      return done(absl::DataLossError("no audited checkpoint is left"));
    }
    Later([this, order, done] { SetAside(order, done); });
  });
}

void ModelStore::SetAside(const chief::RecordRepair& order,
                          const std::function<void(absl::StatusOr<chief::RepairRecorded>)>& done) {
  absl::Status moved = CheckTerm();
  if (moved.ok()) moved = Check(DiskWrite::kRepair);
  if (!moved.ok()) return done(moved);
  const uint64_t set_aside_from = disk_->SetAsideNewer();
  const Manifest newest = *disk_->Newest();
  done(chief::RepairRecorded{order.lineage, newest.snapshot, newest.trained_for, newest.evaluated, newest.ledger,
                             set_aside_from});
}

void ModelStore::Read(const SnapshotId& id, uint32_t, std::function<void(std::optional<ReplicaState>)> done) {
  done(disk_->Load(id));
}

}  // namespace lockstep::simulation
