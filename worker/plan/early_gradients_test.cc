// When gradients of BF16 are there as float32, in graphs and in passes.
#include "worker/plan/early_gradients.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

// A perceptron of six layers alike.
MetaGraph Layers() {
  MetaGraphRequest request = ImageRequest("mlp", 8);
  request.precision = Precision::kBf16;
  request.model.hidden_sizes = {64, 64, 64, 64, 64};
  return Must(BuildMetaGraph(request));
}

MetaGraph Gpt() {
  MetaGraphRequest request = ImageRequest("mlp", 4);
  request.precision = Precision::kBf16;
  request.model = {.architecture = "gpt2", .layers = 2, .heads = 2, .width = 16, .context = 8, .vocabulary = 32};
  request.inputs = {{"tokens", "tokens", InputRole::kFeature, DType::kI64, {kBatchDim, 8}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, 8}, {}}};
  return Must(BuildMetaGraph(request));
}

std::vector<std::string> NamesOf(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  std::sort(names.begin(), names.end());
  return names;
}

// How many casts make gradients, and how many of them do not stand right behind what they cast.
struct Casts {
  int all = 0;
  int late = 0;
};
Casts GradientCasts(const Graph& graph) {
  Casts casts;
  for (size_t i = 1; i < graph.nodes.size(); ++i) {
    const Node& cast = graph.nodes[i];
    if (cast.op != OpType::kCast || !absl::StartsWith(cast.outputs[0], "grad.")) continue;
    ++casts.all;
    // A product may give two of them.
    const std::vector<std::string>& made = graph.nodes[i - 1].outputs;
    casts.late += std::find(made.begin(), made.end(), cast.inputs[0]) == made.end() ? 1 : 0;
  }
  return casts;
}

TEST_CASE("early gradients: casts to float32 follow what they cast, and every node reads what is there", "[plan]") {
  for (const MetaGraph& metagraph : {Layers(), Gpt()}) {
    const Graph before = Must(MakeTrainingGraph(metagraph)).graph;
    Graph graph = before;

    FinishGradientsEarly(&graph);

    CHECK(GradientCasts(before).late >= GradientCasts(before).all - 1);
    CHECK(GradientCasts(graph).all >= 12);
    CHECK(GradientCasts(graph).late == 0);
    CHECK(NamesOf(graph) == NamesOf(before));
    std::map<std::string, int> made;
    for (const Node& node : graph.nodes) {
      for (const std::string& output : node.outputs) made[output] = 1;
    }
    for (const Node& node : graph.nodes) {
      for (const std::string& input : node.inputs) CHECK((input.empty() || made[input] != 1));
      for (const std::string& output : node.outputs) made[output] = 2;
    }
  }
}

struct PassFacts {
  double first_bucket = 0;  // the share of the nodes that ran before it was announced
  std::map<std::string, std::vector<float>> gradients;
};

PassFacts RunLayers(const PlanOptions& options) {
  const MetaGraph metagraph = Layers();
  const auto device = Must(device::MakeDevice(device::DeviceKind::kCpu, {}));
  TestVariables variables(metagraph, 3);
  const auto plan =
      Must(Plan::Make(device.get(), Must(MakeTrainingGraph(metagraph)).graph, variables.addresses, options));
  const TestInputs inputs(plan->inputs(), 5);
  MustOk(plan->RefreshVariables());
  PassFacts facts;
  double nodes = 0;
  MustOk(plan->RunPass(inputs.bytes, {}, [&](int bucket) {
    if (bucket == 0) nodes = static_cast<double>(plan->nodes_executed());
    const GradientLayout& layout = plan->gradient_layout();
    const Bucket& announced = layout.buckets()[static_cast<size_t>(bucket)];
    for (int t = announced.first_tensor; t < announced.last_tensor; ++t) {
      const FlatRange range = layout.tensors()[static_cast<size_t>(t)];
      const auto* from =
          reinterpret_cast<const float*>(plan->bucket_address(bucket)) + range.offset - announced.range.offset;
      facts.gradients[plan->gradient_parameters()[static_cast<size_t>(t)]].assign(from, from + range.size);
    }
    return absl::OkStatus();
  }));
  facts.first_bucket = nodes / static_cast<double>(plan->nodes_executed());
  return facts;
}

TEST_CASE("early gradients: with bf16 buckets leave during backward, with the bits of gradients that are kept",
          "[plan]") {
  const PassFacts kept = RunLayers({.bucket_bytes = 1 << 10});
  const PassFacts early = RunLayers({.bucket_bytes = 1 << 10, .gradients = GradientMemory::kUntilRead});
  const PassFacts apart = RunLayers({.bucket_bytes = 1 << 10, .gradients = GradientMemory::kApart});
  const PassFacts summed = RunLayers({.bucket_bytes = 1 << 10, .accumulate_passes = true});

  CHECK(kept.first_bucket > 0.8);
  CHECK(early.first_bucket < 0.7);
  CHECK(apart.first_bucket < 0.7);
  CHECK(summed.first_bucket < 0.7);
  REQUIRE(kept.gradients.size() == 12);
  CHECK(early.gradients == kept.gradients);
  CHECK(apart.gradients == kept.gradients);
  CHECK(summed.gradients == kept.gradients);
}

TEST_CASE("early gradients: a plan takes less memory for them, whatever is computed again", "[plan]") {
  const auto device = Must(device::MakeDevice(device::DeviceKind::kReference, {}));
  for (const Recomputation recompute : {Recomputation::kNone, Recomputation::kCheap, Recomputation::kBlocks}) {
    const auto arena = [&](GradientMemory gradients) {
      return Must(Plan::Draft(device.get(), Must(MakeTrainingGraph(Layers())).graph,
                              {.bucket_bytes = 1 << 10, .gradients = gradients, .recompute = recompute}))
          ->memory()
          .arena;
    };
    // The first layer's 784 x 64 weights are half of all.
    CHECK(arena(GradientMemory::kUntilRead) < arena(GradientMemory::kUntilNextPass));
    CHECK(arena(GradientMemory::kApart) <= arena(GradientMemory::kUntilRead));
  }
}

}  // namespace
}  // namespace lockstep::worker
