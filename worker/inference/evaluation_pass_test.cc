#include "worker/inference/evaluation_pass.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "worker/device/choice/devices.h"
#include "worker/inference/device_weights.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kNumbers = 11;

// Sample i has the feature i and the target 0.
class Numbers final : public DataSource {
 public:
  int64_t num_samples() const override { return kNumbers; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    auto* value = reinterpret_cast<float*>(out.data());
    for (const int64_t index : indices) *value++ = field == 0 ? static_cast<float>(index) : 0.0f;
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  const std::vector<TensorSpec> fields_ = {{"inputs", DType::kF32, {1}}, {"labels", DType::kF32, {1}}};
  const std::string hash_ = "numbers";
};

// scores = weight * (x - the batch's mean of x), and their mean square over the batch: as a loss of the job by the
// output's name, or as an output of the graph.
MetaGraph Spread(LossKind loss) {
  MetaGraphRequest request;
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 1}}};
  graph.variables = {{"weight", DType::kF32, {1}, VariableKind::kParameter, {}}};
  graph.nodes = {{"mean", OpType::kReduceMean, {"x"}, {"mean"}, ReduceAttributes{{0}, true, false}},
                 {"centre", OpType::kSub, {"x", "mean"}, {"centred"}, NoAttributes{}},
                 {"scale", OpType::kMul, {"centred", "weight"}, {"scores"}, NoAttributes{}},
                 {"square", OpType::kMul, {"scores", "scores"}, {"squares"}, NoAttributes{}},
                 {"loss", OpType::kReduceMean, {"squares"}, {"loss"}, ReduceAttributes{{}, false, false}}};
  graph.outputs = {loss == LossKind::kGraphOutput ? "loss" : "scores"};
  request.imported = graph;
  request.loss.kind = loss;
  request.loss.output = graph.outputs[0];
  request.loss.label = "labels";
  request.inputs = {{"x", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 1}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kF32, {kBatchDim, 1}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 4;
  auto metagraph = BuildMetaGraph(request);
  INFO(metagraph.status());
  REQUIRE(metagraph.ok());
  return *std::move(metagraph);
}

absl::StatusOr<Tensor> Two(const Variable&) { return Tensor::Of<float>({1}, {2.0f}); }

// Of the squares of all samples, each batch by itself.
double ExpectedSum(int64_t batch) {
  double sum = 0;
  for (int64_t i = 0; i < kNumbers; ++i) {
    const int64_t first = i / batch * batch, last = std::min(first + batch, kNumbers) - 1;
    const double score = 2.0 * (static_cast<double>(i) - static_cast<double>(first + last) / 2);
    sum += score * score;
  }
  return sum;
}

}  // namespace

TEST_CASE("evaluation: where samples see each other, the last ones see no others", "[inference]") {
  const LossKind loss = GENERATE(LossKind::kGraphOutput, LossKind::kMse);
  const int64_t batch = GENERATE(1, 3, 4, 11, 16);
  const int64_t shards = GENERATE(1, 3);
  const MetaGraph metagraph = Spread(loss);
  const Numbers source;
  const auto device = *device::MakeDevice(device::DeviceKind::kReference, {});
  const EvaluationGraph full = MakeEvaluationGraph(metagraph, batch).value();
  const std::optional<EvaluationGraph> rest = MakeRestGraph(metagraph, full, batch, kNumbers).value();
  const auto weights = DeviceWeights::Load(*device, full.graph.variables, Two);
  REQUIRE(weights.ok());

  const auto plan = Plan::Make(device.get(), full.graph, weights->addresses(), {}).value();
  std::unique_ptr<Plan> rest_plan;
  if (rest.has_value()) rest_plan = Plan::Make(device.get(), rest->graph, weights->addresses(), {}).value();
  const auto pass =
      EvaluationPass::Make(plan.get(), rest_plan.get(), &source, {.signature = metagraph.signature, .batch = batch});
  REQUIRE(pass.status() == absl::OkStatus());
  REQUIRE((*pass)->RefreshVariables() == absl::OkStatus());
  const auto sums = EvaluateAll(**pass, 5, shards);
  REQUIRE(sums.status() == absl::OkStatus());

  CHECK(full.samples_apart == (batch == 1));
  CHECK(rest.has_value() == (kNumbers % batch != 0));
  CHECK(sums->denominator == kNumbers);
  CHECK(sums->loss == Approx(ExpectedSum(batch)).epsilon(1e-5));
}

}  // namespace lockstep::worker
