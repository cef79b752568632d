// What the simulated chief does with its storage: saves, publications, ways back, drains.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/describe.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {

void SimChief::Perform(const chief::StorePlan& action) {
  After(DiskDelay(), [this, action] {
    if (!cluster_->disk->HasStaging(term_)) return Step(chief::TermLost{cluster_->disk->highest_claim()});
    if (Refused({}, DiskWrite::kPlan)) return;
    cluster_->disk->plan = StoredPlan{action.plan_hash, action.plan, action.data_digest};
    Step(chief::PlanStored{action.plan_hash});
  });
}

void SimChief::Perform(const chief::OpenSave& action) {
  saves_[action.snapshot] = OpenSave{action.shares, {}};
  // Opening makes directories; the shell tells of a failure by an event of its own.
  if (RefusesNow(DiskWrite::kOpen)) {
    After(absl::ZeroDuration(), [this, snapshot = action.snapshot] {
      Step(chief::StorageFailed{snapshot, "no space left", /*may_pass=*/true});
    });
  }
}

void SimChief::Perform(const chief::AbandonSave& action) {
  cluster_->Cover("save abandoned");
  saves_.erase(action.snapshot);
}

void SimChief::Perform(const chief::StoreManifest& action) {
  const auto open = saves_.find(action.snapshot);
  if (open == saves_.end() || open->second.received.size() != action.shares) {
    return cluster_->oracle->Violation(
        absl::StrCat("a manifest is stored for step ", action.snapshot.step, " before every share is there"));
  }
  Manifest manifest;
  manifest.snapshot = action.snapshot;
  manifest.term = term_;
  manifest.plan_hash = action.plan_hash;
  manifest.audited = action.audited;
  manifest.audit_floor = action.audit_floor;
  manifest.evaluated = action.evaluated;
  manifest.ledger = action.ledger;
  manifest.trained_for = action.trained_for;
  manifest.state.step = open->second.received.at(0).step;
  for (int i = 0; i < kWeights; ++i) {
    manifest.state.weights[i] = open->second.received.at(i % action.shares).weights[i];
  }
  // Now and then a share has other bits than its sender meant, and no checksum on the way has noticed.
  if (world().random().Chance(10)) {
    manifest.state.weights[world().random().Below(kWeights)] ^= 1;
    ++damaged_;
  }
  After(DiskDelay(), [this, manifest] {
    if (!cluster_->disk->HasStaging(term_)) return Step(chief::TermLost{cluster_->disk->highest_claim()});
    if (saves_.count(manifest.snapshot) == 0) return;
    if (Refused(manifest.snapshot, DiskWrite::kManifest)) return;
    // Now and then the disk is full for one write.
    if (world().random().Chance(5)) return Step(chief::StorageFailed{manifest.snapshot, "no space left", true});
    manifests_[manifest.snapshot] = manifest;
    manifest_stored_.insert(manifest.snapshot);
    Step(chief::ManifestStored{manifest.snapshot, DigestText(manifest.state)});
  });
}

void SimChief::Perform(const chief::PublishCommit& action) {
  if (manifest_stored_.count(action.snapshot) == 0) {
    return cluster_->oracle->Violation(
        absl::StrCat("step ", action.snapshot.step, " is published before its manifest is stored"));
  }
  const Manifest manifest = manifests_[action.snapshot];
  if (cluster_->on_commit) cluster_->on_commit(process_);
  After(DiskDelay(), [this, manifest] {
    if (Refused(manifest.snapshot, DiskWrite::kPublish)) return;
    if (cluster_->disk->Publish(term_, manifest) == Disk::PublishResult::kFenced) {
      return Step(chief::TermLost{cluster_->disk->highest_claim()});
    }
    After(DiskDelay(), [this, manifest] {
      cluster_->disk->SyncPublished(manifest.snapshot);
      const Manifest* there = cluster_->disk->At(manifest.snapshot.step);
      if (there == nullptr) {  // lost when a machine went down: this one cannot make durable what is not there
        return Step(chief::StorageFailed{manifest.snapshot, "no such directory", /*may_pass=*/true});
      }
      if (!there->set_aside) cluster_->oracle->Committed(manifest.snapshot.step);
      const bool keeps_best = cluster_->settings.policy.training.evaluation.keep_best;
      if (cluster_->disk->HasStaging(term_)) {
        cluster_->disk->Retain(cluster_->settings.keep_checkpoints, keeps_best ? &manifest.ledger : nullptr,
                               manifest.audit_floor);
      }
      newest_told_ = std::max(newest_told_, static_cast<int64_t>(manifest.snapshot.step));
      saves_.erase(manifest.snapshot);
      manifests_.erase(manifest.snapshot);
      Step(chief::Published{manifest.snapshot});
    });
  });
}

void SimChief::Perform(const chief::AmendManifest& action) {
  cluster_->Cover("manifest amended");
  After(DiskDelay(), [this, action] {
    if (!cluster_->disk->HasStaging(term_)) return Step(chief::TermLost{cluster_->disk->highest_claim()});
    if (Refused(action.snapshot, DiskWrite::kManifest)) return;
    if (world().random().Chance(5)) return Step(chief::StorageFailed{action.snapshot, "no space left", true});
    cluster_->disk->Amend(action.snapshot, action.ledger);
    Step(chief::Published{action.snapshot});
  });
}

void SimChief::Perform(const chief::RecordRepair& action) {
  const Disk& disk = *cluster_->disk;
  const Lineage& now = disk.lineage().empty() ? cluster_->settings.policy.lineage : disk.lineage();
  if (action.lineage != now) cluster_->oracle->Differs(now, action.reason);
  for (const std::string& host : action.hosts) {
    if (cluster_->odd_hosts.count(host) != 0) continue;
    if (cluster_->oracle->SomeHitAlike(static_cast<int64_t>(action.found_at))) continue;
    cluster_->oracle->Violation(absl::StrCat(host, " is named, whose replicas were not hit: ", action.reason));
  }
  if (!action.hosts.empty()) cluster_->Cover("the replica that was hit is named");
  After(DiskDelay(), [this, action] { BranchOff(action); });
}

void SimChief::BranchOff(const chief::RecordRepair& order) {
  Disk& disk = *cluster_->disk;
  if (!disk.HasStaging(term_)) return Step(chief::TermLost{disk.highest_claim()});
  if (RefusesNow(DiskWrite::kRepair)) return Step(chief::RepairFailed{order.lineage, "no space left", true});
  const std::optional<chief::PastRepair> before = disk.repair();
  const bool begins = disk.lineage() != order.lineage;
  if (disk.BranchOff(order.lineage, order.found_at, order.hosts) == nullptr) {
    return Step(chief::RepairFailed{order.lineage, "no audited checkpoint is left", false});
  }
  const bool soon = before.has_value() && order.found_at <= before->found_at + chief::AuditRepair::kSoon;
  if (begins && soon) repair_ends_ = true;
  After(DiskDelay(), [this, order] {
    Disk& there = *cluster_->disk;
    if (!there.HasStaging(term_)) return Step(chief::TermLost{there.highest_claim()});
    if (RefusesNow(DiskWrite::kRepair)) return Step(chief::RepairFailed{order.lineage, "no space left", true});
    const uint64_t set_aside_from = there.SetAsideNewer();
    const Manifest newest = *there.Newest();
    newest_told_ = static_cast<int64_t>(newest.snapshot.step);
    if (phase_ == chief::Phase::kDone) repair_ends_ = true;
    cluster_->Cover("went back to an audited state");
    Step(chief::RepairRecorded{order.lineage, newest.snapshot, newest.trained_for, newest.evaluated, newest.ledger,
                               set_aside_from});
  });
}

void SimChief::AskDrain(const std::string& target, bool undo, absl::Duration within) {
  Step(chief::DrainRequested{++drain_requests_, {target}, undo, within, "a person"});
}

SimChief::DrainStatus SimChief::StatusOfDrain(const std::string& target) {
  const std::vector<std::string> drained = core_->View().drained;
  if (std::count(drained.begin(), drained.end(), target) != 0) return DrainStatus::kKnown;
  if (drains_written_ < drain_writes_) return DrainStatus::kKnown;
  for (const chief::Drain& drain : cluster_->disk->drains) {
    if (drain.target == target) return DrainStatus::kStoredOnly;
  }
  return DrainStatus::kNone;
}

void SimChief::Perform(const chief::DrainDecided& action) {
  if (action.refused) return;
  After(DiskDelay(), [this, action, number = ++drain_writes_] {
    if (!cluster_->disk->HasStaging(term_)) return Step(chief::TermLost{cluster_->disk->highest_claim()});
    const bool newest = number > drains_written_;
    drains_written_ = std::max(drains_written_, number);
    if (newest && !RefusesNow(DiskWrite::kDrains)) cluster_->disk->drains = action.drains;
  });
}

}  // namespace lockstep::simulation
