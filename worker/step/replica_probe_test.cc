// The probe of a replica (rule 31): it has to notice all that an update depends on.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/serialize.h"
#include "common/job/graph_request.h"
#include "common/job/job.h"
#include "common/status/check.h"
#include "worker/data/test_files.h"
#include "worker/plan/kernel_plan.h"
#include "worker/step/replica.h"

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

}  // namespace lockstep::worker
