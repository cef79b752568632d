// What the simulated chief does with its storage: saves, publications, ways back, drains.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/may_pass.h"
#include "tests/simulation/sim_chief.h"
#include "tests/simulation/sim_worker.h"

namespace lockstep::simulation {

void SimChief::Failed(const SnapshotId& snapshot, const absl::Status& status) {
  if (absl::IsAborted(status)) return Step(chief::TermLost{cluster_->disk->highest_claim()});
  Step(chief::StorageFailed{snapshot, std::string(status.message()), MayPass(status)});
}

void SimChief::Perform(const chief::StorePlan& action) {
  store_->StorePlan(action, [this, hash = action.plan_hash](const absl::Status& stored) {
    stored.ok() ? Step(chief::PlanStored{hash}) : Failed({}, stored);
  });
}

void SimChief::ShareCame(const IncomingShare& share, const Incarnation& sender, std::function<void(bool)> answer) {
  store_->TakeShare(share, [this, id = share.snapshot, share = share.share, shares = share.shares, sender,
                            answer = std::move(answer)](const absl::Status& taken) {
    if (taken.ok()) {
      answer(true);
      return Step(chief::ShareStored{id, share, shares});
    }
    if (absl::IsFailedPrecondition(taken)) return answer(false);  // no such save is open any more
    if (absl::IsDataLoss(taken)) ++damaged_;
    if (absl::IsAborted(taken) || MayPass(taken)) {
      Failed(id, taken);
    } else {
      Step(chief::ShareBroken{id, share, shares, std::string(taken.message()), sender, absl::IsDataLoss(taken)});
    }
    if (!absl::IsAborted(taken)) answer(false);
  });
}

void SimChief::Perform(const chief::OpenSave& action) {
  saves_.insert(action.snapshot);
  store_->OpenSave(action.snapshot, action.shares,
                   [this, id = action.snapshot](const absl::Status& opened) { Failed(id, opened); });
  if (!cluster_->settings.policy.frozen_share) return;
  // The replica has no frozen tensors: it takes the storage a while to find that it has none.
  After(world().random().Between(absl::ZeroDuration(), absl::Milliseconds(200)),
        [this, id = action.snapshot] { Step(chief::FrozenShareMissing{id}); });
}

void SimChief::Perform(const chief::AbandonSave& action) {
  cluster_->Cover("save abandoned");
  saves_.erase(action.snapshot);
  store_->AbandonSave(action.snapshot);
}

void SimChief::Perform(const chief::StoreManifest& action) {
  store_->FinishShares(action, [this, id = action.snapshot](const absl::StatusOr<Digest>& digest) {
    if (digest.ok()) {
      if (*digest != id.digest) ++damaged_;
      manifest_stored_.insert(id);
      return Step(chief::ManifestStored{id, *digest});
    }
    if (absl::IsCancelled(digest.status())) return;  // the save was given up
    if (!absl::IsFailedPrecondition(digest.status())) return Failed(id, digest.status());
    if (saves_.count(id) == 0) return;
    cluster_->oracle->Violation(
        absl::StrCat("a manifest is stored for step ", id.step, " before every share is there"));
  });
}

void SimChief::Perform(const chief::PublishCommit& action) {
  if (manifest_stored_.count(action.snapshot) == 0) {
    return cluster_->oracle->Violation(
        absl::StrCat("step ", action.snapshot.step, " is published before its manifest is stored"));
  }
  store_->Publish(action.snapshot, [this, id = action.snapshot](const absl::Status& published) {
    if (!published.ok()) return Failed(id, published);
    newest_told_ = std::max(newest_told_, static_cast<int64_t>(id.step));
    saves_.erase(id);
    Step(chief::Published{id});
  });
}

void SimChief::Perform(const chief::AmendManifest& action) {
  cluster_->Cover("manifest amended");
  store_->Amend(action, [this, id = action.snapshot](const absl::Status& amended) {
    amended.ok() ? Step(chief::Published{id}) : Failed(id, amended);
  });
}

void SimChief::Perform(const chief::RecordRepair& action) {
  if (action.lineage != lineage_) cluster_->oracle->Differs(lineage_, action.reason);
  for (const std::string& host : action.hosts) {
    if (cluster_->odd_hosts.count(host) != 0) continue;
    if (cluster_->oracle->SomeHitAlike(static_cast<int64_t>(action.found_at))) continue;
    cluster_->oracle->Violation(absl::StrCat(host, " is named, whose replicas were not hit: ", action.reason));
  }
  if (!action.hosts.empty()) cluster_->Cover("the replica that was hit is named");
  store_->Repair(action,
                 [this, action](const absl::StatusOr<chief::RepairRecorded>& repair) { Repaired(action, repair); });
}

void SimChief::Repaired(const chief::RecordRepair& order, const absl::StatusOr<chief::RepairRecorded>& repair) {
  if (absl::IsAborted(repair.status())) return Failed({}, repair.status());
  if (!repair.ok()) {
    return Step(chief::RepairFailed{order.lineage, std::string(repair.status().message()), MayPass(repair.status())});
  }
  const bool soon = repair_.has_value() && order.found_at <= repair_->found_at + chief::AuditRepair::kSoon;
  if (order.lineage != lineage_ && soon) repair_ends_ = true;
  if (phase_ == chief::Phase::kDone) repair_ends_ = true;
  repair_ = chief::PastRepair{order.found_at, order.hosts};
  lineage_ = order.lineage;
  newest_told_ = static_cast<int64_t>(repair->checkpoint.step);
  cluster_->Cover("went back to an audited state");
  Step(*repair);
}

void SimChief::AskDrain(const std::string& target, bool undo, absl::Duration within) {
  Step(chief::DrainRequested{++drain_requests_, {target}, undo, within, "a person"});
}

SimChief::DrainStatus SimChief::StatusOfDrain(const std::string& target) {
  const std::vector<std::string> drained = core_->View().drained;
  if (std::count(drained.begin(), drained.end(), target) != 0) return DrainStatus::kKnown;
  if (drains_written_ < drain_writes_) return DrainStatus::kKnown;
  for (const chief::Drain& drain : cluster_->disk->FindDrains()) {
    if (drain.target == target) return DrainStatus::kStoredOnly;
  }
  return DrainStatus::kNone;
}

void SimChief::Perform(const chief::DrainDecided& action) {
  if (action.refused) return;
  store_->StoreDrains(action.drains, [this, number = ++drain_writes_](const absl::Status& stored) {
    if (absl::IsAborted(stored)) return Failed({}, stored);
    drains_written_ = std::max(drains_written_, number);
  });
}

}  // namespace lockstep::simulation
