#include "tests/simulation/job_store/real_store.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/str_cat.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/share_proof.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/crc32c.h"
#include "common/status/status_macros.h"
#include "tests/simulation/job_store/tiny_state.h"

namespace lockstep::simulation {
namespace {

// As ChiefStore says it.
absl::Status Told(const absl::Status& status) {
  if (!absl::IsAborted(status) || chief::IsFenced(status)) return status;
  return absl::UnknownError(status.message());
}

template <typename T>
absl::StatusOr<T> Told(absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return Told(result.status());
}

}  // namespace

RealStore::RealStore(Cluster* cluster, RealDisk* disk, ProcessId process)
    : cluster_(cluster), disk_(disk), process_(process) {
  gate_.OnStop([this] {
    thread_.Stop();
    gate_.StopIn(1 + disk_->random().Below(30));
  });
  gate_.RefusesWhen([this](bool writes) { return disk_->refuses && (writes || disk_->in_bucket()); });
  gate_.OnRefused([this]() -> absl::Status {
    ++disk_->refused;
    cluster_->Cover("the disk refuses");
    if (disk_->in_bucket() || (!disk_->refuses && disk_->random().Chance(500))) {
      return absl::UnavailableError("Input/output error");
    }
    return absl::ResourceExhaustedError("no space left");
  });
}

World& RealStore::world() const { return *cluster_->world; }

// ---- calls, one after the other -------------------------------------------------------------------------------------

template <typename Result>
void RealStore::Post(std::optional<DiskWrite> write, std::function<Result()> run, std::function<void(Result)> done) {
  auto result = std::make_shared<std::optional<Result>>();
  Enqueue({write, [result, run = std::move(run)] { result->emplace(run()); },
           [result, done = std::move(done)] { done(*std::move(*result)); }});
}

void RealStore::Enqueue(Call call) {
  calls_.push_back(std::move(call));
  if (calls_.size() == 1) Later([this] { BeginNext(); });
}

void RealStore::DrawFaults() {
  Random& random = disk_->random();
  Call& call = calls_.front();
  gate_.StopIn(random.Chance(disk_->stops_per_mille()) ? 1 + random.Below(40) : 0);
  gate_.FailIn(0);
  if (cluster_->on_stop || (call.write == DiskWrite::kPublish && cluster_->on_commit)) {
    gate_.StopIn(1 + random.Below(40));
  }
  if (!call.write.has_value()) return;
  // A save is opened by its first share.
  if (call.write == DiskWrite::kShare && disk_->refuses_once.count(DiskWrite::kOpen) != 0)
    call.write = DiskWrite::kOpen;
  const bool once = disk_->refuses_once.count(*call.write) != 0;
  // Now and then the disk is full for one write.
  if (once || random.Chance(5)) gate_.FailIn(1 + random.Below(once ? 12 : 40));
}

void RealStore::BeginNext() {
  if (world().now() < disk_->stalls_until) return Later([this] { BeginNext(); });
  DrawFaults();
  disk_->Runs(&gate_);
  if (gate_.stops()) return Went(thread_.Begin(calls_.front().run));
  calls_.front().run();
  Went(true);
}

void RealStore::Went(bool ended) {
  disk_->Runs(nullptr);
  if (!ended) {
    cluster_->Cover("a call stops halfway");
    if (calls_.front().write == DiskWrite::kPublish && cluster_->on_commit) cluster_->on_commit(process_);
    if (cluster_->on_stop) cluster_->on_stop(process_);
    if (gate_.dead()) return;
    return Later([this] {
      disk_->Runs(&gate_);
      Went(thread_.Resume());
    });
  }
  const Call call = std::move(calls_.front());
  if (call.write.has_value() && gate_.fails_in() == 0) disk_->refuses_once.erase(*call.write);
  gate_.StopIn(0);
  gate_.FailIn(0);
  calls_.pop_front();
  if (!calls_.empty()) Later([this] { BeginNext(); });
  call.done();
}

void RealStore::Die() {
  if (gate_.dead()) return;
  gate_.Die();
  disk_->Runs(&gate_);
  while (thread_.under_way()) thread_.Resume();
  store_.reset();
  disk_->Runs(nullptr);
  calls_.clear();
}

// ---- a start and an end ---------------------------------------------------------------------------------------------

absl::StatusOr<TakenOver> RealStore::Take() {
  store_.reset();
  setup_.policy.lineage.clear();
  int exit_code = 0;
  LS_ASSIGN_OR_RETURN(store_, chief::JobStore::OpenAt(disk_->Open(gate_), setup_, exit_code));
  LS_RETURN_IF_ERROR(store_->WriteAddress(absl::StrCat("chief-", process_, ":1")));
  return TakenOver{store_->recovered(), setup_.policy.lineage};
}

void RealStore::TakeOver(std::function<void(absl::StatusOr<TakenOver>)> done) {
  if (setup_.metagraph_bytes.empty()) setup_ = SetUpTinyJob(cluster_->settings);
  Post<absl::StatusOr<TakenOver>>(
      std::nullopt, [this] { return Told(Take()); },
      [this, done = std::move(done)](const absl::StatusOr<TakenOver>& found) {
        if (!found.ok()) {
          store_.reset();
          return done(found);
        }
        disk_->TookOver(*found);
        VerifyOlder();
        done(found);
      });
}

// What earlier chiefs left is read through while the job runs; retention counts it then.
void RealStore::VerifyOlder() {
  Post<absl::StatusOr<bool>>(
      std::nullopt,
      [this] {
        const std::atomic<bool> stop = false;
        std::vector<std::string> messages;
        return Told(store_->VerifyNext(&stop, messages));
      },
      [this](const absl::StatusOr<bool>& more) {
        if (more.ok() && !*more) return;
        After(more.ok() ? absl::Milliseconds(20) : absl::Seconds(5), [this] { VerifyOlder(); });
      });
}

void RealStore::LookForNewer(Done done) {
  Post<absl::Status>(
      std::nullopt,
      [this] {
        // As the real one does every two seconds; what is written shows that the job is still its own.
        absl::Status looked = store_->WriteStats("{}\n");
        looked.Update(store_->KeepAddress());
        looked.Update(store_->Beat());
        return Told(looked);
      },
      std::move(done));
}

void RealStore::End(int code, std::function<void(int)> done) {
  Post<absl::Status>(
      std::nullopt, [this, code] { return code == 76 ? absl::OkStatus() : Told(store_->RecordEnd(code)); },
      [code, done = std::move(done)](const absl::Status& told) { done(absl::IsAborted(told) ? 76 : code); });
}

// ---- saves ----------------------------------------------------------------------------------------------------------

void RealStore::OpenSave(const SnapshotId& id, uint32_t shares, Done) { store_->OpenSave(id, shares); }

void RealStore::AbandonSave(const SnapshotId& id) {
  Enqueue({std::nullopt, [this, id, save = store_->CloseSave(id)] { store_->AbandonSave(id, save); }, [] {}});
}

void RealStore::TakeShare(const IncomingShare& share, Done done) {
  // Now and then the memory of a sender has other bits than it announced.
  Random& random = disk_->random();
  const auto wrong_bit = random.Chance(5) ? std::optional(random.Next()) : std::nullopt;
  Post<absl::Status>(
      DiskWrite::kShare, [this, share, wrong_bit] { return Told(Receive(share, wrong_bit)); }, std::move(done));
}

absl::Status RealStore::Receive(const IncomingShare& share, std::optional<uint64_t> wrong_bit) {
  LS_ASSIGN_OR_RETURN(const Share pieces, store_->ShareOf(share.share, share.shares));
  const std::vector<std::string> tensors = BytesOf(share.state);
  std::string stream;
  for (const SharePiece& piece : pieces.pieces) absl::StrAppend(&stream, tensors[static_cast<size_t>(piece.tensor)]);
  const ShareProof proof = ProofOf(DigestsOf(share.state), pieces);
  if (wrong_bit.has_value() && !stream.empty()) {
    stream[*wrong_bit / 8 % stream.size()] ^= static_cast<char>(1u << *wrong_bit % 8);
  }
  if (share.torn) stream.resize(stream.size() / 2);
  LS_ASSIGN_OR_RETURN(chief::ShareReceiver receiver, store_->Receive(share.snapshot, share.share, share.shares,
                                                                     TensorDigestBytes(proof), LeafDigestBytes(proof)));
  LS_RETURN_IF_ERROR(receiver.Add(stream, Crc32c(stream)));
  if (share.torn) return absl::CancelledError("the stream broke");
  LS_RETURN_IF_ERROR(receiver.End());
  return store_->CheckShareComplete(share.snapshot, share.share);
}

int64_t RealStore::BestOf(const EvaluationLedger& ledger) const {
  const EvaluationRule& rule = cluster_->settings.policy.training.evaluation;
  if (!rule.keep_best) return 0;
  const bool known = ledger.rule == rule.id && ledger.best_step > 0;
  return known ? static_cast<int64_t>(ledger.best_step) : chief::kKeepNamed;
}

chief::CommitInfo RealStore::InfoOf(const chief::StoreManifest& order) const {
  chief::CommitInfo info;
  info.kernel_plan = order.plan_hash;
  info.trained_ms = absl::ToInt64Milliseconds(order.trained_for);
  info.evaluation_pending = !order.evaluated;
  info.audited = order.audited;
  info.audit_floor = static_cast<int64_t>(std::min<uint64_t>(order.audit_floor, info.audit_floor));
  info.evaluations = order.ledger;
  info.keep_step = BestOf(order.ledger);
  info.worker_stats_json = "{}\n";
  return info;
}

void RealStore::FinishShares(const chief::StoreManifest& order, std::function<void(absl::StatusOr<Digest>)> done) {
  infos_[order.snapshot] = InfoOf(order);
  Post<absl::StatusOr<Digest>>(
      DiskWrite::kManifest,
      [this, id = order.snapshot, save = store_->FindSave(order.snapshot)] {
        return Told(store_->FinishShards(id, save));
      },
      std::move(done));
}

void RealStore::Publish(const SnapshotId& id, Done done) {
  const chief::CommitInfo info = infos_[id];
  infos_.erase(id);
  Post<absl::Status>(
      DiskWrite::kPublish, [this, id, info] { return Told(store_->Publish(id, info).status()); },
      [this, id, info, done = std::move(done)](const absl::Status& published) {
        if (published.ok()) disk_->Committed(store_->recovered().term, id, info.audited, info.evaluations);
        done(published);
      });
}

void RealStore::Amend(const chief::AmendManifest& order, Done done) {
  Post<absl::Status>(
      DiskWrite::kManifest,
      [this, order] { return Told(store_->Amend(order.snapshot, order.ledger, BestOf(order.ledger)).status()); },
      std::move(done));
}

void RealStore::ChangeByHand(Random& random) {
  const std::vector<uint64_t> steps = disk_->LiveSteps();
  if (store_ == nullptr || steps.empty()) return;
  const uint64_t step = steps[random.Below(steps.size())];
  const auto change = static_cast<chief::CheckpointChange>(random.Below(3));
  const uint64_t number = disk_->Changes(change, step);
  Post<absl::Status>(
      DiskWrite::kManifest,
      [this, change, step] { return Told(store_->ChangeCheckpoint(change, static_cast<int64_t>(step)).status()); },
      [this, change, step, number](const absl::Status& changed) {
        if (changed.ok()) disk_->Changed(store_->recovered().term, change, step, number);
      });
}

// ---- plans, drains, the way back, what workers fetch ----------------------------------------------------------------

void RealStore::StorePlan(const chief::StorePlan& order, Done done) {
  Post<absl::Status>(
      DiskWrite::kPlan,
      [this, order] { return Told(store_->StorePlan(order.plan_hash, order.plan, order.data_digest)); },
      std::move(done));
}

void RealStore::StoreDrains(const std::vector<chief::Drain>& drains, Done done) {
  Post<absl::Status>(
      DiskWrite::kDrains, [this, drains] { return Told(store_->StoreDrains(drains)); }, std::move(done));
}

void RealStore::Repair(const chief::RecordRepair& order,
                       std::function<void(absl::StatusOr<chief::RepairRecorded>)> done) {
  Post<absl::StatusOr<chief::RepairRecorded>>(
      DiskWrite::kRepair,
      [this, order] {
        std::vector<std::string> messages;
        return Told(store_->Repair(order, messages));
      },
      [this, order, done = std::move(done)](const absl::StatusOr<chief::RepairRecorded>& repair) {
        if (repair.ok()) disk_->WentBack(order.lineage, repair->checkpoint);
        done(repair);
      });
}

void RealStore::Read(const SnapshotId& id, uint32_t readers, std::function<void(std::optional<ReplicaState>)> done) {
  Post<std::optional<ReplicaState>>(
      std::nullopt, [this, id, readers] { return ReadState(id, readers); }, std::move(done));
}

std::optional<ReplicaState> RealStore::ReadState(const SnapshotId& id, uint32_t readers) {
  std::vector<std::string> tensors(TinyLayout().size());
  for (uint32_t reader = 0; reader < readers; ++reader) {
    const absl::StatusOr<Share> share = store_->ShareOf(reader, readers);
    if (!share.ok()) return std::nullopt;
    for (const SharePiece& piece : share->pieces) {
      const absl::StatusOr<std::string> bytes = store_->ReadShare(id, *share, piece.begin, piece.bytes);
      if (!bytes.ok()) return std::nullopt;
      tensors[static_cast<size_t>(piece.tensor)] = *bytes;
    }
  }
  return StateOf(id.step, tensors);
}

}  // namespace lockstep::simulation
