// The probe of a replica (rule 31): it has to notice all that an update depends on.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/serialize.h"
#include "common/job/graph_request.h"
#include "common/job/job.h"
#include "common/status/check.h"
#include "worker/data/test_files.h"
#include "worker/plan/kernel_plan.h"
#include "worker/step/replica.h"
#include "worker/step/replica_plans.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kSamples = 16;

// The digests of the probe by node, "update/fc1.bias" among them.
std::map<std::string, std::string> ProbeOf(const TestFiles& files, const std::vector<std::string>& overrides) {
  const std::string inputs = NpyBytes(NpyHeader("|u1", "(16, 6)"), std::string(kSamples * 6, '\7'));
  const std::string labels = NpyBytes(NpyHeader("|u1", "(16,)"), std::string(kSamples, '\1'));
  const std::string yaml = absl::StrCat(
      "name: probe\nmodel: {builtin: {name: mlp, classes: 3, hidden: [8]}, loss: softmax_cross_entropy}\n"
      "train: {duration: 9steps, global_batch_size: 8, logical_shards: 2, optimizer: {name: adamw, lr: 0.01, "
      "weight_decay: 0.5}}\nnumerics: {tuned: false}\nresources: {device: cpu}\ndata:\n  train: {inputs: ",
      files.Write("inputs.npy", inputs), ", labels: ", files.Write("labels.npy", labels), "}\n");
  const JobSpec job = ParseJob(yaml, files.directory() + "/job.yaml", overrides).value();
  const TensorSpec field{"inputs", DType::kF32, {6}};
  const MetaGraph metagraph =
      BuildMetaGraph(MakeMetaGraphRequest(job, nullptr, {&field, 1}, {"labels", DType::kI64, {}}, kSamples).value())
          .value();
  ReplicaProblem problem;
  const auto replica = Replica::Make(SerializeMetaGraph(metagraph).value(), job, "", nullptr, problem);
  LS_CHECK(replica != nullptr, std::string(problem.status.message()).c_str());
  std::map<std::string, std::string> digests;
  const KernelPlan plan = ParseKernelPlan(replica->kernel_plan()).value();
  for (const NodeDigest& digest : plan.probe) digests[digest.node] = digest.sha256;
  return digests;
}

}  // namespace

TEST_CASE("replica: the probe updates as steps do, groups and parameters without decay included", "[step]") {
  const TestFiles files;
  const auto plain = ProbeOf(files, {});
  for (const char* const setting :
       {"train.optimizer.no_decay=[\"*.weight\"]", "train.optimizer.groups=[{parameters: \"*.weight\", lr: 0.5}]",
        "train.optimizer.groups=[{parameters: \"*.weight\", weight_decay: 0}]"}) {
    CAPTURE(setting);
    const auto other = ProbeOf(files, {setting});
    CHECK(other.at("update/fc1.weight") != plain.at("update/fc1.weight"));
    CHECK(other.at("update/fc1.bias") == plain.at("update/fc1.bias"));
  }
}

// A model whose scores are centred over the batch, evaluated on so many samples in passes of 4.
class CentredJob {
 public:
  explicit CentredJob(const TestFiles& files) : files_(files) {
    graph_.inputs = {{"x", DType::kF32, {kBatchDim, 6}}};
    graph_.variables = {{"weight", DType::kF32, {6, 3}, VariableKind::kParameter, {}}};
    graph_.nodes = {{"layer", OpType::kMatMul, {"x", "weight"}, {"y"}, NoAttributes{}},
                    {"mean", OpType::kReduceMean, {"y"}, {"mean"}, ReduceAttributes{{0}, true, false}},
                    {"centre", OpType::kSub, {"y", "mean"}, {"scores"}, NoAttributes{}}};
    graph_.outputs = {"scores"};
  }

  std::unique_ptr<Replica> Make(int samples, const std::string& kernel_plan, ReplicaProblem& problem) const {
    const std::string yaml = absl::StrCat(
        "name: probe\nmodel: {builtin: {name: mlp, classes: 3}, loss: softmax_cross_entropy}\n"
        "train: {duration: 9steps, global_batch_size: 8, logical_shards: 2, optimizer: {name: sgd, lr: 0.01}}\n"
        "numerics: {tuned: false}\nresources: {device: cpu}\ndata: {train: {",
        Files(16), "}, eval: {", Files(samples), "}}\n");
    const JobSpec job = ParseJob(yaml, files_.directory() + "/job.yaml", {}).value();
    MetaGraphRequest request;
    request.imported = graph_;
    request.inputs = {{"x", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 6}, {}},
                      {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
    request.update.schedule.lr = 0.1;
    request.pass_batch = 4;
    const MetaGraph metagraph = BuildMetaGraph(request).value();
    return Replica::Make(SerializeMetaGraph(metagraph).value(), job, kernel_plan, nullptr, problem);
  }

 private:
  std::string Files(int samples) const {
    const auto shape = [&](const char* rest) { return absl::StrCat("(", samples, ",", rest, ")"); };
    const auto values = [&](int count, char value) { return std::string(static_cast<size_t>(samples * count), value); };
    return absl::StrCat(
        "inputs: ", files_.Write(absl::StrCat(samples, ".npy"), NpyBytes(NpyHeader("|u1", shape(" 6")), values(6, 7))),
        ", labels: ",
        files_.Write(absl::StrCat(samples, "l.npy"), NpyBytes(NpyHeader("|u1", shape("")), values(1, 1))));
  }

  const TestFiles& files_;
  Graph graph_;
};

TEST_CASE("replica: the last samples of an evaluation have a plan and a probe of their own, by their number",
          "[step]") {
  const TestFiles files;
  const CentredJob centred(files);
  ReplicaProblem problem;
  const auto of_10 = centred.Make(10, "", problem);
  INFO(problem.status);
  REQUIRE(of_10 != nullptr);
  KernelPlan plan = ParseKernelPlan(of_10->kernel_plan()).value();
  CHECK(Holds(plan, RestLabel(2)));
  CHECK_FALSE(Holds(plan, RestLabel(3)));
  CHECK(ParseKernelPlan(centred.Make(12, "", problem)->kernel_plan()).value().choices.size() < plan.choices.size());

  // Another evaluation set does not break the job; bits of the same one that differ do.
  CHECK(centred.Make(11, of_10->kernel_plan(), problem) != nullptr);
  for (NodeDigest& digest : plan.probe) {
    if (absl::StartsWith(digest.node, RestLabel(2))) digest.sha256 = std::string(64, '0');
  }
  const std::string changed = SerializeKernelPlan(plan);
  CHECK(centred.Make(11, changed, problem) != nullptr);
  CHECK(centred.Make(10, changed, problem) == nullptr);
  CHECK(problem.problem == PrepareProblem::kProbe);
}

}  // namespace lockstep::worker
