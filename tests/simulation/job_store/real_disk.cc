#include "tests/simulation/job_store/real_disk.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/server/drain_list.h"
#include "chief/term/job_log.h"
#include "common/checkpoint_format/manifest.h"
#include "common/log/log.h"
#include "common/status/check.h"
#include "common/storage/forwarding_storage.h"
#include "tests/simulation/job_store/gated_objects.h"
#include "tests/simulation/job_store/gated_storage.h"
#include "tests/simulation/job_store/make_real_disk.h"
#include "tests/simulation/job_store/real_store.h"
#include "tests/simulation/job_store/tiny_state.h"
#include "tests/simulation/sim_chief.h"

namespace lockstep::simulation {

namespace {

// In the layout of the state; a checkpoint has an order of its own.
size_t IndexOf(const std::string& tensor) {
  size_t index = 0;
  while (index < TinyLayout().size() && TinyLayout()[index].spec.name != tensor) ++index;
  LS_CHECK(index < TinyLayout().size(), "a checkpoint holds the tensors of the job");
  return index;
}

}  // namespace

std::unique_ptr<Disk> MakeRealDisk(Cluster* cluster, uint64_t seed) {
  return std::make_unique<RealDisk>(cluster, seed);
}

RealDisk::RealDisk(Cluster* cluster, uint64_t seed)
    : cluster_(cluster),
      random_(Mix(seed ^ 0x5704ull)),
      in_bucket_(random_.Chance(300)),
      stops_per_mille_(random_.Chance(700) ? static_cast<int>(random_.Between(50, 600)) : 0),
      object_faults_per_mille_(random_.Chance(500) ? static_cast<int>(random_.Between(1, 10)) : 0),
      setup_(SetUpTinyJob(cluster->settings)),
      lineage_(cluster->settings.policy.lineage) {
  SetLogStyle(LogLevel::error, LogFormat::text);  // what chiefs say of faults that were drawn
  place_ = in_bucket_ ? std::make_unique<JobPlace>(&bucket_)
                      : std::make_unique<JobPlace>(std::make_unique<ForwardingStorage>(directory_));
  BeginJob();
  bucket_.next_fault = [this] { return NextObjectFault(); };
  directory_.SetHook([this](int64_t number, absl::string_view what) {
    if (what == "sync the parent of") BeforeParentSync(number);
  });
}

// As a chief leaves it that dies before its first checkpoint: the lineage is that of the schedule, not a random one.
void RealDisk::BeginJob() {
  const std::unique_ptr<chief::JobLog> log = chief::JobLog::Of(*place_);
  LS_CHECK(log->Read().ok(), "an empty place has no log");
  const absl::Status begun = log->Change("the job begins", [this](CommitRecord& record) {
    record.set_job_id(setup_.policy.job);
    record.set_lineage(lineage_);
  });
  LS_CHECK(begun.ok(), "nothing fails before the schedule begins");
}

std::unique_ptr<ChiefStore> RealDisk::NewLife(ProcessId process) {
  return std::make_unique<RealStore>(cluster_, this, process);
}

std::unique_ptr<JobPlace> RealDisk::Open(OperationGate& gate) {
  if (in_bucket_) return std::make_unique<JobPlace>(std::make_unique<GatedObjects>(bucket_, gate));
  return std::make_unique<JobPlace>(std::make_unique<GatedStorage>(directory_, gate));
}

Digest RealDisk::DigestOf(const ReplicaState& state) const { return DigestsOf(state).state; }

// ---- faults ---------------------------------------------------------------------------------------------------------

// A rename is seen before it is durable: the process may stop, die or meet an error in between.
void RealDisk::BeforeParentSync(int64_t number) {
  if (std::exchange(fault_planned_, false)) directory_.SetFaults({});
  if (running_ == nullptr || running_->Before(/*writes=*/true).ok()) return;
  StorageFaults faults;
  faults.at[number] = StorageFaults::Kind::kIoError;
  directory_.SetFaults(std::move(faults));
  fault_planned_ = true;
}

ObjectFault RealDisk::NextObjectFault() {
  if (running_ == nullptr || running_->dead() || !random_.Chance(object_faults_per_mille_)) return ObjectFault::kNone;
  static constexpr ObjectFault kFaults[] = {ObjectFault::kLost, ObjectFault::kAnswerLost, ObjectFault::kTwice,
                                            ObjectFault::kLate};
  const ObjectFault fault = kFaults[random_.Below(std::size(kFaults))];
  if (fault != ObjectFault::kTwice) ++refused;
  if (fault == ObjectFault::kLate) {
    cluster_->world->AfterOutside(random_.Between(absl::Milliseconds(1), absl::Seconds(5)),
                                  [this] { bucket_.Arrive(1); });
  }
  cluster_->Cover("a request to the bucket is lost, late or comes twice");
  return fault;
}

// What others that live have written is not lost: their machines still have it.
void RealDisk::MachineCrash(Random& random) {
  const uint64_t seed = random.Next();
  for (const auto& chief : cluster_->chiefs) {
    if (cluster_->world->alive(chief->process())) return;
  }
  if (in_bucket_) return;
  cluster_->Cover("a machine went down with the directory");
  directory_.Restart(MemoryStorage::Survival::kSome, seed);
  fault_planned_ = false;
}

// ---- what a reader finds --------------------------------------------------------------------------------------------

CommitRecord RealDisk::NewestRecord() const {
  const auto record = chief::JobLog::Of(*place_)->Read();
  if (!record.ok()) cluster_->oracle->Violation(absl::StrCat("the log cannot be read: ", record.status().ToString()));
  return record.ok() && record->has_value() ? **record : CommitRecord();
}

Term RealDisk::highest_claim() const { return static_cast<Term>(NewestRecord().term()); }

std::vector<chief::Drain> RealDisk::FindDrains() const { return chief::DrainsOf(NewestRecord()); }

std::optional<StoredCheckpoint> RealDisk::FindNewest() const {
  const CommitRecord record = NewestRecord();
  const auto newest = std::max_element(record.live().begin(), record.live().end(),
                                       [](const auto& a, const auto& b) { return a.step() < b.step(); });
  return newest == record.live().end() ? std::nullopt : Load(*newest);
}

std::optional<StoredCheckpoint> RealDisk::FindAt(uint64_t step) const {
  const CommitRecord record = NewestRecord();
  for (const LiveCheckpoint& live : record.live()) {
    if (live.step() == static_cast<int64_t>(step)) return Load(live);
  }
  return std::nullopt;
}

std::optional<StoredCheckpoint> RealDisk::Load(const LiveCheckpoint& live) const {
  std::optional<StoredCheckpoint> found;
  const auto reader = chief::CheckpointReader::Open(place_->storage(), live.prefix());
  std::vector<std::string> tensors(TinyLayout().size());
  absl::Status read = reader.status();
  for (size_t i = 0; read.ok() && i < reader->layout().size(); ++i) {
    std::string& bytes = tensors[IndexOf(reader->layout()[i].spec.name)];
    read = reader->StreamTensor(i, [&bytes](absl::string_view more) {
      absl::StrAppend(&bytes, more);
      return absl::OkStatus();
    });
  }
  if (!read.ok()) {
    cluster_->oracle->Violation(absl::StrCat("step ", live.step(), " cannot be read: ", read.ToString()));
    return std::nullopt;
  }
  const lockstep::Manifest& manifest = reader->manifest();
  const auto step = static_cast<uint64_t>(manifest.step());
  const std::optional<ReplicaState> state = StateOf(step, tensors);
  if (!state.has_value()) {
    cluster_->oracle->Violation(absl::StrCat("step ", step, " holds the bytes of no replica"));
    return std::nullopt;
  }
  return StoredCheckpoint{.snapshot = {manifest.lineage(), step, manifest.state_digest()},
                          .audited = manifest.audited(),
                          .evaluated = !manifest.evaluation_pending(),
                          .ledger = FromProto(manifest.evaluations()),
                          .state = *state};
}

// ---- what the oracle hears ------------------------------------------------------------------------------------------

void RealDisk::TookOver(const TakenOver& found) {
  const SnapshotId& newest = found.recovered.checkpoint;
  WentBack(found.lineage, newest);
  newest_scan_ = std::max(newest_scan_, found.recovered.term);
  newest_found_ = static_cast<int64_t>(newest.step);
  const bool first = cluster_->oracle->highest_committed() < 0;
  cluster_->oracle->Scanned(found.recovered.term, newest_found_);
  cluster_->oracle->Published(found.recovered.term, newest, newest.digest, /*accepted=*/true);
  if (first) cluster_->oracle->Committed(newest.step);
  // Also one that its chief was never told of.
  const std::optional<StoredCheckpoint> there = FindAt(newest.step);
  commits_[newest.step] = there.has_value() && there->audited;
  CheckNeeded(NewestRecord());
}

void RealDisk::WentBack(const Lineage& lineage, const SnapshotId& checkpoint) {
  if (lineage == lineage_) return;
  lineage_ = lineage;
  commits_.erase(commits_.upper_bound(checkpoint.step), commits_.end());
  pinned_.erase(pinned_.upper_bound(checkpoint.step), pinned_.end());
  newest_found_ = std::min(newest_found_, static_cast<int64_t>(checkpoint.step));
  const std::optional<StoredCheckpoint> there = FindAt(checkpoint.step);
  if (!there.has_value()) {
    return cluster_->oracle->Violation(absl::StrCat("the job went back to step ", checkpoint.step, ", which is gone"));
  }
  cluster_->oracle->WentBack(checkpoint.lineage, lineage, there->state);
}

void RealDisk::Committed(Term term, const SnapshotId& id, bool audited, const EvaluationLedger& ledger) {
  Oracle& oracle = *cluster_->oracle;
  const auto step = static_cast<int64_t>(id.step);
  if (term < newest_scan_) {
    // It had its answer late. What it was told is true only where the newer one has found it.
    const bool counts = JobLineage(id.lineage) == JobLineage(lineage_);
    if (counts && step > newest_found_) {
      oracle.Violation(absl::StrCat("term ", term, " commits step ", step, ", which term ", newest_scan_,
                                    " did not find when it took over"));
    }
    return;
  }
  oracle.Published(term, id, id.digest, /*accepted=*/true);
  oracle.Committed(id.step);
  commits_[id.step] = audited;
  CheckRetention(id, ledger);
}

namespace {

bool IsLive(const CommitRecord& record, uint64_t step) {
  return std::any_of(record.live().begin(), record.live().end(),
                     [step](const auto& live) { return live.step() == static_cast<int64_t>(step); });
}

}  // namespace

bool RealDisk::NamesAuditedAfter(const CommitRecord& record, uint64_t step) const {
  for (const LiveCheckpoint& live : record.live()) {
    if (live.step() <= static_cast<int64_t>(step) || !live.audited()) continue;
    const std::optional<StoredCheckpoint> there = Load(live);
    if (!there.has_value() || JobLineage(there->snapshot.lineage) != JobLineage(lineage_)) continue;
    cluster_->oracle->CheckState(live.prefix(), there->snapshot.lineage, there->state);
    return true;
  }
  return false;
}

void RealDisk::CheckLive(const CommitRecord& record, uint64_t step, const char* what) const {
  if (!IsLive(record, step)) cluster_->oracle->Violation(absl::StrCat(what, ", step ", step, ", is not in the log"));
}

void RealDisk::CheckNeeded(const CommitRecord& record) const {
  const auto audited =
      std::find_if(commits_.rbegin(), commits_.rend(), [](const auto& commit) { return commit.second; });
  if (audited != commits_.rend() && !NamesAuditedAfter(record, audited->first)) {
    CheckLive(record, audited->first, "the newest audited checkpoint");
  }
  for (const uint64_t step : pinned_) CheckLive(record, step, "a pinned checkpoint");
}

void RealDisk::CheckRetention(const SnapshotId& id, const EvaluationLedger& ledger) const {
  const CommitRecord record = NewestRecord();
  CheckLive(record, id.step, "the newest checkpoint");
  CheckNeeded(record);
  const bool keeps_best = cluster_->settings.policy.training.evaluation.keep_best;
  if (keeps_best && ledger.best_step > 0 && commits_.count(ledger.best_step) != 0)
    CheckLive(record, ledger.best_step, "the best checkpoint");
}

std::vector<uint64_t> RealDisk::LiveSteps() const {
  const CommitRecord record = NewestRecord();
  std::vector<uint64_t> steps;
  for (const LiveCheckpoint& live : record.live()) steps.push_back(static_cast<uint64_t>(live.step()));
  return steps;
}

uint64_t RealDisk::Changes(chief::CheckpointChange change, uint64_t step) {
  ++changes_;
  if (change != chief::CheckpointChange::kPin) {
    pinned_.erase(step);
    unpinned_[step] = changes_;
  }
  return changes_;
}

void RealDisk::Changed(Term term, chief::CheckpointChange change, uint64_t step, uint64_t number) {
  if (term < newest_scan_) return;  // it had its answer late
  cluster_->Cover("a checkpoint is pinned, unpinned or removed by hand");
  const CommitRecord record = NewestRecord();
  if (change == chief::CheckpointChange::kPin && unpinned_[step] < number) pinned_.insert(step);
  if (change == chief::CheckpointChange::kRemove) {
    commits_.erase(step);
    if (IsLive(record, step)) cluster_->oracle->Violation(absl::StrCat("step ", step, " is removed, and in the log"));
    if (!commits_.empty()) CheckLive(record, commits_.rbegin()->first, "the newest checkpoint");
  }
  CheckNeeded(record);
}

}  // namespace lockstep::simulation
