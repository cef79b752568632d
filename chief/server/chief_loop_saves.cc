// What the loop does for saves, and for the way back after replicas differed: all of it on the storage's thread.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "chief/server/chief_loop.h"
#include "common/checkpoint_format/naming.h"
#include "common/log/log.h"
#include "common/status/check.h"
#include "common/storage/may_pass.h"

namespace lockstep::chief {

void ChiefLoop::PostStorageFailure(const SnapshotId& snapshot, const absl::Status& status) {
  if (IsFenced(status)) {
    Post(TermLost{options_.config.recovered.term + 1}, true);
  } else {
    Post(StorageFailed{snapshot, std::string(status.message()), MayPass(status)}, true);
  }
}

void ChiefLoop::Perform(const StorePlan& action) {
  storage_.Post([this, action] {
    const absl::Status status = options_.store->StorePlan(action.plan_hash, action.plan, action.data_digest);
    if (!status.ok()) return PostStorageFailure({}, status);
    Post(PlanStored{action.plan_hash}, true);
  });
}

void ChiefLoop::Perform(const OpenSave& action) {
  progress_.SaveOpened(clock_.Now(), action.snapshot);
  // Done at once: a share may arrive as soon as the next action went out.
  options_.store->OpenSave(action.snapshot, action.shares);
  if (!options_.config.policy.frozen_share) return;
  storage_.Post([this, action] {
    const absl::StatusOr<bool> there = options_.store->HasFrozenShare(action.snapshot);
    if (absl::IsFailedPrecondition(there.status())) return;  // given up meanwhile
    if (!there.ok()) return PostStorageFailure(action.snapshot, there.status());
    if (*there) {
      Post(ShareStored{action.snapshot, action.shares - 1, action.shares}, true);
    } else {
      Post(FrozenShareMissing{action.snapshot}, true);
    }
  });
}

void ChiefLoop::Perform(const AbandonSave& action) {
  commits_.erase(action.snapshot);
  // Closed here, in order with OpenSave of the same snapshot; its files are removed behind it.
  storage_.Post([this, id = action.snapshot, save = options_.store->CloseSave(action.snapshot)] {
    options_.store->AbandonSave(id, save);
  });
}

void ChiefLoop::Perform(const StoreManifest& action) {
  progress_.On(action);
  CommitInfo info;
  info.kernel_plan = action.plan_hash;
  info.trained_ms = absl::ToInt64Milliseconds(action.trained_for);
  if (__builtin_mul_overflow(static_cast<int64_t>(action.snapshot.step),
                             options_.setup->job.train().global_batch_size(), &info.position)) {
    info.position = std::numeric_limits<int64_t>::max();
  }
  info.epoch = info.position / options_.setup->facts.train_samples;
  info.members = MembersOf(action);
  info.evaluation_pending = !action.evaluated;
  info.audited = action.audited;
  info.audit_floor = static_cast<int64_t>(std::min<uint64_t>(action.audit_floor, info.audit_floor));
  info.evaluations = action.ledger;
  info.keep_step = BestOf(action.ledger);
  records_.Trained(action.trained_for);
  ShowMarks();
  info.worker_stats_json = records_.EncodedStats(Now(), core_.View());
  commits_[action.snapshot] = std::move(info);
  // Until the storage's thread comes to it, the save may have been given up, and the snapshot may be saved anew.
  storage_.Post([this, id = action.snapshot, save = options_.store->FindSave(action.snapshot)] {
    const absl::StatusOr<std::string> digest = options_.store->FinishShards(id, save);
    if (absl::IsCancelled(digest.status())) return;
    if (digest.ok()) {
      Post(ManifestStored{id, *digest}, true);
    } else if (absl::IsFailedPrecondition(digest.status())) {
      // A share that was told to be there came for an earlier save of the snapshot: it is sent again with the next one.
      Post(StorageFailed{id, std::string(digest.status().message()), /*may_pass=*/true}, true);
    } else {
      // Every leaf was compared as it came in, so this is the storage's.
      PostStorageFailure(id, digest.status());
    }
  });
}

std::vector<ManifestMember> ChiefLoop::MembersOf(const StoreManifest& action) {
  std::vector<ManifestMember> members;
  for (const Incarnation& incarnation : action.members) {
    ManifestMember& member = members.emplace_back();
    const Worker* worker = core_.Find(incarnation);
    if (worker == nullptr) continue;  // gone since: its rank is kept without a name
    member.set_name(worker->name());
    member.set_host(worker->host);
    member.set_device(worker->device);
  }
  return members;
}

void ChiefLoop::Perform(const PublishCommit& action) {
  const auto found = commits_.find(action.snapshot);
  LS_CHECK(found != commits_.end(), "a manifest is stored before it is published");
  CommitInfo info = std::move(found->second);
  commits_.erase(found);
  storage_.Post([this, snapshot = action.snapshot, info = std::move(info), events = records_.TakeEvents()] {
    writer_.WriteEvents(events);  // a chief that continues from here finds the records of earlier steps
    OnPublished(snapshot, options_.store->Publish(snapshot, info), /*amended=*/false);
  });
}

void ChiefLoop::Perform(const AmendManifest& action) {
  progress_.On(action);
  storage_.Post([this, action, keep_step = BestOf(action.ledger)] {
    OnPublished(action.snapshot, options_.store->Amend(action.snapshot, action.ledger, keep_step), /*amended=*/true);
  });
}

void ChiefLoop::Perform(const RecordRepair& action) {
  storage_.Post([this, action] {
    std::vector<std::string> messages;
    const absl::StatusOr<RepairRecorded> repair = options_.store->Repair(action, messages);
    for (const std::string& message : messages) LS_LOG(warn, message);
    if (repair.ok()) {
      const std::string path = options_.store->DescribeCheckpoint(repair->checkpoint.step);
      return Post(LoopTask([this, done = *repair, path] { OnRepaired(done, path); }));
    }
    if (IsFenced(repair.status())) {
      Post(TermLost{options_.config.recovered.term + 1}, true);
    } else {
      Post(RepairFailed{action.lineage, std::string(repair.status().message()), MayPass(repair.status())}, true);
    }
  });
}

void ChiefLoop::OnRepaired(const RepairRecorded& repair, const std::string& path) {
  last_checkpoint_ = path;
  records_.CommittedIs(static_cast<int64_t>(repair.checkpoint.step));
  Step(repair);
}

void ChiefLoop::Perform(const WentBack& action) {
  progress_.On(action);
  records_.WentBack(Now(), action);
}

int64_t ChiefLoop::BestOf(const EvaluationLedger& ledger) const {
  const EvaluationRule& rule = options_.config.policy.training.evaluation;
  if (!rule.keep_best) return 0;
  const bool known = ledger.rule == rule.id && ledger.best_step > 0;
  return known ? static_cast<int64_t>(ledger.best_step) : kKeepNamed;
}

void ChiefLoop::OnPublished(const SnapshotId& snapshot, const absl::StatusOr<PublishedCheckpoint>& published,
                            bool amended) {
  if (!published.ok()) return PostStorageFailure(snapshot, published.status());
  for (const std::string& message : published->messages) LS_LOG(info, message);
  Post(LoopTask([this, snapshot, path = published->path, amended] {
    last_checkpoint_ = options_.store->Describe(path);
    if (!amended) {
      progress_.SavePublished(clock_.Now(), snapshot);
      records_.Published(Now(), static_cast<int64_t>(snapshot.step), path);
    }
    Step(lockstep::chief::Published{snapshot});
    if (!amended) hooks_->Published(static_cast<int64_t>(snapshot.step));
  }));
}

}  // namespace lockstep::chief
