// What a replica is made of: models that only some passes leave as they are.
#include "worker/step/replica.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/serialize.h"
#include "common/job/graph_request.h"
#include "worker/data/test_files.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kReplicaSamples = 16;

std::string Npy(const std::string& type, const std::string& shape, const std::string& data) {
  return NpyBytes(absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ")}"), data);
}

TEST_CASE("replica: a model may end in a dropout that drops nothing and has a mask", "[step]") {
  TestFiles files;
  const std::string data =
      absl::StrCat("{inputs: ", files.Write("x.npy", Npy("<f4", "(16, 3,", std::string(kReplicaSamples * 3 * 4, '\0'))),
                   ", labels: ", files.Write("y.npy", Npy("<i8", "(16,", std::string(kReplicaSamples * 8, '\0'))), "}");
  const JobSpec job =
      ParseJob(absl::StrCat("name: drop\n"
                            "model: {builtin: {name: mlp, classes: 10, hidden: [4]}}\n"
                            "train: {duration: 1steps, global_batch_size: 4, logical_shards: 1, optimizer: {lr: 0.1}}\n"
                            "numerics: {tuned: false}\nresources: {device: cpu}\n"
                            "data: {train: ",
                            data, "}\n"),
               files.directory() + "/job.yaml", {})
          .value();
  const TensorSpec fields{"inputs", DType::kF32, {3}};
  MetaGraph metagraph =
      BuildMetaGraph(
          MakeMetaGraphRequest(job, nullptr, {&fields, 1}, {"labels", DType::kI64, {}}, kReplicaSamples).value())
          .value();
  DropoutAttributes nothing;
  nothing.ratio = 0.0;
  nothing.training_mode = true;
  metagraph.forward.nodes.push_back({"last", OpType::kDropout, metagraph.forward.outputs, {"kept", "mask"}, nothing});
  metagraph.forward.outputs = {"kept"};
  metagraph.loss.output = "kept";

  ReplicaProblem problem;
  const auto replica = Replica::Make(SerializeMetaGraph(metagraph).value(), job, "", nullptr, problem);

  INFO(problem.status.ToString());
  CHECK(replica != nullptr);
}

}  // namespace
}  // namespace lockstep::worker
