// A test harness for JobStore: a tiny job in a directory of its own, or in another place, with several chiefs one after
// the other.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_STORE_HARNESS_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_STORE_HARNESS_H_

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/server/chief_main.h"
#include "chief/server/job_store.h"
#include "chief/stats/stats_tracker.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/share_proof.h"
#include "common/checkpoint_format/shares.h"
#include "common/digest/crc32c.h"
#include "common/digest/sha256.h"
#include "common/digest/state_digest.h"
#include "common/graph/state_tensors.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/local/no_room.h"
#include "common/training/job_data.h"

namespace lockstep::chief {

namespace fs = std::filesystem;

inline constexpr char kPlan[] = "the kernel plan of the job";
inline const std::string kData(64, 'd');

inline std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void Write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Data with facts but without samples.
class SmallData : public JobData {
 public:
  SmallData() {
    facts_.train_samples = facts_.eval_samples = 8;
    facts_.inputs = {{"inputs", DType::kF32, {2}}};
    facts_.labels = {"labels", DType::kI32, {}};
    facts_.train_sha256 = kData;
  }
  const DataFacts& facts() const override { return facts_; }
  void CheckFits(const MetaGraph&, Findings&) const override {}

 private:
  DataFacts facts_;
};

struct SaveAttempt {
  absl::Status status;  // the first error
  bool published = false;
};

// A tiny job in a directory below TEST_TMPDIR, which the destructor removes.
class Job {
 public:
  Job() {
    const char* base = std::getenv("TEST_TMPDIR");
    std::string made = std::string(base != nullptr ? base : "/tmp") + "/store-XXXXXX";
    REQUIRE(mkdtemp(made.data()) != nullptr);
    root_ = made;
    Write(root_ / "job.yaml", R"(
name: tiny
model: {builtin: {name: mlp, classes: 2, hidden: [2]}, loss: softmax_cross_entropy}
data: {train: {inputs: none, labels: none}, eval: {inputs: none, labels: none}}
eval: {every: 10steps, metric: loss}
train: {seed: 1, duration: 1000steps, global_batch_size: 4, logical_shards: 1, optimizer: {name: sgd, lr: 0.1}}
checkpoint: {every: 10steps, keep_latest: 2, keep_best: true}
)");
    options_.job_path = root_ / "job.yaml";
    options_.directory = dir();
    options_.inspect_data = [](const JobSpec&, const Graph*, Findings&) { return std::make_unique<SmallData>(); };
  }
  virtual ~Job() { fs::remove_all(root_); }

  void Set(const std::string& setting) { options_.overrides.push_back(setting); }
  void Listen(const std::string& address) { options_.listen = address; }
  std::string dir() const { return root_ / "dir"; }
  fs::path In(const std::string& path) const { return fs::path(dir()) / path; }

  // Starts the next chief.
  absl::StatusOr<std::unique_ptr<JobStore>> Open(std::optional<int64_t> succeeds = std::nullopt) {
    absl::StatusOr<JobSetup> setup = SetUpJob(options_, code);
    if (!setup.ok()) return setup.status();
    setup_ = *std::move(setup);
    if (place) return JobStore::OpenAt(place(), setup_, code, succeeds);
    return JobStore::Open(setup_, code, succeeds);
  }

  const EvaluationRule& rule() const { return setup_.policy.training.evaluation; }

  // Publishes a state of this step, made under the plan, with this ledger.
  absl::StatusOr<PublishedCheckpoint> Save(JobStore& store, uint64_t step, const EvaluationLedger& ledger,
                                           bool audited = true) {
    const std::vector<CheckpointTensor> layout = ToCheckpointTensors(MakeStateLayout(setup_.metagraph));
    std::vector<std::string> bytes;
    for (const CheckpointTensor& tensor : layout) {
      bytes.emplace_back(CheckedByteSize(tensor.spec.dtype, tensor.spec.shape).value(), static_cast<char>(step));
    }
    std::vector<TensorBytes> tensors;
    for (size_t i = 0; i < layout.size(); ++i) tensors.push_back({&layout[i].spec, bytes[i]});
    const StateDigests digests = DigestState(tensors, 1);
    const SnapshotId id{setup_.policy.lineage, step, digests.state};
    absl::StatusOr<PublishedCheckpoint> published = Store(store, id, layout, tensors, digests, ledger, audited);
    if (!published.ok()) store.AbandonSave(id, store.CloseSave(id));
    return published;
  }

  // As Save, for a save that may fail.
  SaveAttempt TrySave(JobStore& store, uint64_t step, const EvaluationLedger& ledger) {
    const auto published = Save(store, step, ledger);
    return {published.status(), published.ok()};
  }

  // Publishes steps 10, 20 and 30 under the job's plan; step 10 has the lowest loss.
  void Train() {
    auto store = Open();
    REQUIRE(store.status() == absl::OkStatus());
    REQUIRE((*store)->StorePlan(Sha256Hex(kPlan), kPlan, kData).ok());
    REQUIRE((*store)->WriteAddress("127.0.0.1:4242").ok());
    EvaluationLedger ledger;
    for (const auto& [step, loss] : std::vector<std::pair<uint64_t, double>>{{10, 0.5}, {20, 0.7}, {30, 0.6}}) {
      ledger = Judge(rule(), ledger, step, {.loss = loss, .denominator = 1});
      REQUIRE(Save(**store, step, ledger).status() == absl::OkStatus());
    }
  }

  int code = 0;
  // Not empty: makes the place that is used instead of the directory.
  std::function<std::unique_ptr<JobPlace>()> place;

 private:
  absl::StatusOr<PublishedCheckpoint> Store(JobStore& store, const SnapshotId& id,
                                            const std::vector<CheckpointTensor>& layout,
                                            const std::vector<TensorBytes>& tensors, const StateDigests& digests,
                                            const EvaluationLedger& ledger, bool audited) {
    store.OpenSave(id, 1);
    const SharePlan plan = PlanShares(layout, 1).value();
    std::string stream;
    for (const SharePiece& piece : plan.shares[0].pieces) {
      absl::StrAppend(&stream, tensors[static_cast<size_t>(piece.tensor)].bytes);
    }
    const ShareProof proof = ProofOf(digests, plan.shares[0]);
    LS_ASSIGN_OR_RETURN(ShareReceiver receiver,
                        store.Receive(id, 0, 1, TensorDigestBytes(proof), LeafDigestBytes(proof)));
    LS_RETURN_IF_ERROR(receiver.Add(stream, Crc32c(stream)));
    LS_RETURN_IF_ERROR(receiver.End());
    LS_RETURN_IF_ERROR(store.FinishShards(id, store.FindSave(id)).status());
    CommitInfo info;
    info.kernel_plan = Sha256Hex(kPlan);
    info.evaluations = ledger;
    info.audited = audited;
    info.keep_step = ledger.best_step == 0 ? kKeepNamed : static_cast<int64_t>(ledger.best_step);
    return store.Publish(id, info);
  }

  fs::path root_;
  ChiefOptions options_;
  JobSetup setup_;
};

inline void CheckRightState(const JobStore& store) {
  CHECK(store.recovered().checkpoint.step == 30);
  CHECK(store.recovered().plan_hash == Sha256Hex(kPlan));
  CHECK(store.recovered().data_digest == kData);
  CHECK(store.recovered().ledger.best_step == 10);
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_STORE_HARNESS_H_
