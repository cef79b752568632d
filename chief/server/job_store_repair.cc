// JobStore: the way back after replicas differed. One record of the log comes first: from that moment on no checkpoint
// above the audited one belongs to the job, whoever looks.
#include <string>
#include <utility>

#include "chief/checkpoint/found_mark.h"
#include "chief/server/job_store.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr int kMaxAncestors = 64;

}  // namespace

absl::Status JobStore::BranchOff(const RecordRepair& order, int64_t step) {
  DirectoryMark mark = mark_;
  mark.set_lineage(order.lineage);
  mark.clear_ancestors();
  Ancestor* parent = mark.add_ancestors();
  parent->set_lineage(mark_.lineage());
  parent->set_last_step(step);
  parent->set_found_at(static_cast<int64_t>(order.found_at));
  for (const std::string& host : order.hosts) parent->add_hosts(host);
  for (const Ancestor& older : mark_.ancestors()) {
    if (mark.ancestors_size() < kMaxAncestors) *mark.add_ancestors() = older;
  }
  LS_RETURN_IF_ERROR(
      log_->Change(absl::StrCat("replicas differed at step ", order.found_at), [&](CommitRecord& record) {
        record.set_lineage(mark.lineage());
        *record.mutable_ancestors() = mark.ancestors();
        manifests_->Fill(record);
      }));
  mark_ = std::move(mark);
  return absl::OkStatus();
}

absl::StatusOr<RepairRecorded> JobStore::Repair(const RecordRepair& order, std::vector<std::string>& messages) {
  MutexLock lock(&mutex_);
  if (mark_.lineage() != order.lineage) {
    absl::StatusOr<std::string> name = manifests_->FindAudited(order.found_at, messages);
    // Nothing is right for sure, and the next chief must not begin with it either.
    if (absl::IsDataLoss(name.status())) LS_RETURN_IF_ERROR(BranchOff(order, kNothingShared));
    if (!name.ok()) return hold_->Explain(name.status());
    const int64_t audited = manifests_->accepted().at(*name).manifest.step();
    const auto first = static_cast<uint64_t>(manifests_->ForgetAbove(audited));
    if (repairing_ != order.lineage || set_aside_from_ == 0) set_aside_from_ = first;
    repairing_ = order.lineage;
    LS_RETURN_IF_ERROR(BranchOff(order, audited));
  }
  const int64_t step = mark_.ancestors(0).last_step();
  if (step == kNothingShared) return manifests_->FindAudited(order.found_at, messages).status();
  const auto found = manifests_->accepted().find(layout::StepName(step));
  if (found == manifests_->accepted().end()) {
    return absl::DataLossError("the checkpoint that the job went back to is gone");
  }
  const Manifest manifest = found->second.manifest;
  LS_RETURN_IF_ERROR(hold_->Explain(manifests_->SetAsideAbove(step, messages)));
  RepairRecorded repair{order.lineage,
                        {manifest.lineage(), static_cast<uint64_t>(step), manifest.state_digest()},
                        absl::Milliseconds(manifest.trained_ms()),
                        !manifest.evaluation_pending(),
                        FromProto(manifest.evaluations()),
                        set_aside_from_};
  if (rule_.keep_best) LS_RETURN_IF_ERROR(manifests_->SettleBest(rule_, repair.ledger, messages));
  return repair;
}

}  // namespace lockstep::chief
