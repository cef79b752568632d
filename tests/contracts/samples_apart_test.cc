// Where SamplesAreApart says that samples do not meet, another sample in the batch changes no bit of the others: random
// graphs of every op, whose inputs count the samples in any dimension.
#include "common/graph/passes/samples_apart.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/training_graph.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

constexpr int kGraphsPerOp = 100;

// Input -> the dimension that counts samples.
using Axes = std::map<std::string, size_t>;

// Puts dimension `axis` first, or the first one there.
std::vector<int64_t> ToFront(size_t rank, size_t axis) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + static_cast<std::ptrdiff_t>(axis));
  perm.insert(perm.begin(), static_cast<int64_t>(axis));
  return perm;
}

std::vector<int64_t> FromFront(size_t rank, size_t axis) {
  const std::vector<int64_t> to = ToFront(rank, axis);
  std::vector<int64_t> perm(rank);
  for (size_t i = 0; i < rank; ++i) perm[static_cast<size_t>(to[i])] = static_cast<int64_t>(i);
  return perm;
}

// Random inputs that have a dimension of one size, which is the number of samples; none if there is no such.
std::optional<std::pair<Axes, int64_t>> ChooseSamples(const Graph& graph, Dice& dice) {
  std::vector<GraphInput> inputs;
  for (const GraphInput& input : graph.inputs) {
    if (input.name != kRandomInput && !input.shape.empty()) inputs.push_back(input);
  }
  if (inputs.empty()) return std::nullopt;
  const GraphInput& first = inputs[static_cast<size_t>(dice.Roll(0, static_cast<int64_t>(inputs.size()) - 1))];
  const size_t axis = static_cast<size_t>(dice.Roll(0, static_cast<int64_t>(first.shape.size()) - 1));
  const int64_t samples = first.shape[axis];
  if (samples < 2) return std::nullopt;
  Axes axes = {{first.name, axis}};
  for (const GraphInput& input : inputs) {
    if (axes.contains(input.name) || !dice.Flip()) continue;
    const size_t other = static_cast<size_t>(dice.Roll(0, static_cast<int64_t>(input.shape.size()) - 1));
    // Mostly the same dimension, where samples can stay apart.
    const size_t at = axis < input.shape.size() && dice.Flip() ? axis : other;
    if (input.shape[at] == samples) axes[input.name] = at;
  }
  return std::pair(std::move(axes), samples);
}

// The graph with the samples of `axes` in the first dimension of its inputs; its other inputs are constants.
Graph WithSamplesFirst(const Graph& graph, const Axes& axes, const NamedTensors& values) {
  Graph result;
  for (const Constant& constant : graph.constants) AppendConstant(&result, constant.name, constant.value->Clone());
  for (const GraphInput& input : graph.inputs) {
    const auto found = axes.find(input.name);
    if (found == axes.end()) {
      AppendConstant(&result, input.name, values.at(input.name).Clone());
      continue;
    }
    const size_t rank = input.shape.size();
    Shape shape = input.shape;
    std::rotate(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(found->second),
                shape.begin() + static_cast<std::ptrdiff_t>(found->second) + 1);
    const std::string name = absl::StrCat("samples of ", input.name);
    AppendInput(&result, {name, input.dtype, shape});
    MustOk(AppendNode(
        &result,
        {name, OpType::kTranspose, {name}, {input.name}, TransposeAttributes{FromFront(rank, found->second)}}));
  }
  for (const Node& node : graph.nodes) MustOk(AppendNode(&result, node));
  return result;
}

// Ops of which models consist.
constexpr const char* kOpsOfModels[] = {"Add",
                                        "Where",
                                        "Equal",
                                        "Not",
                                        "Identity",
                                        "Cast",
                                        "Relu",
                                        "Gelu",
                                        "Gemm",
                                        "MatMul",
                                        "BatchMatMul",
                                        "Conv",
                                        "ConvTranspose",
                                        "MaxPool",
                                        "GlobalAveragePool",
                                        "BatchNormalization",
                                        "GroupNormalization",
                                        "LayerNormalization",
                                        "RMSNormalization",
                                        "LpNormalization",
                                        "Softmax",
                                        "LogSoftmax",
                                        "Attention",
                                        "Flatten",
                                        "Reshape",
                                        "Squeeze",
                                        "Unsqueeze",
                                        "Expand",
                                        "Tile",
                                        "Transpose",
                                        "Concat",
                                        "Split",
                                        "Slice",
                                        "Pad",
                                        "Gather",
                                        "GatherElements",
                                        "GatherND",
                                        "DepthToSpace",
                                        "Resize",
                                        "ReduceMean",
                                        "ReduceMax",
                                        "ArgMax",
                                        "TopK",
                                        "OneHot",
                                        "CumSum",
                                        "Trilu",
                                        "ReverseSequence",
                                        "SoftmaxCrossEntropyLoss",
                                        "LossWeights",
                                        "PointwiseLoss"};

// Each output of the nodes, with one of its dimensions in front: the dimension that may count samples.
std::vector<std::string> AppendFronts(const std::vector<std::string>& outputs, int64_t samples, Graph* graph) {
  std::vector<std::string> fronts;
  for (const std::string& output : outputs) {
    const Shape shape = graph->values.at(output).shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 0 || shape[axis] % samples != 0) continue;
      fronts.push_back(absl::StrCat(output, " by ", axis));
      MustOk(AppendNode(graph, {fronts.back(),
                                OpType::kTranspose,
                                {output},
                                {fronts.back()},
                                TransposeAttributes{ToFront(shape.size(), axis)}}));
    }
  }
  return fronts;
}

// The inputs of `graph`, and what its nodes make of them; the first sample is another one for another `first`.
NamedTensors RunWithFirst(device::Device& device, const Graph& graph, uint64_t first) {
  NamedTensors values = RandomSources(graph, 1);
  const NamedTensors others = RandomSources(graph, first);
  for (const GraphInput& input : graph.inputs) {
    const size_t bytes = values.at(input.name).bytes().size() / static_cast<size_t>(input.shape[0]);
    std::memcpy(values.at(input.name).data(), others.at(input.name).data(), bytes);
  }
  RunNodes(device, graph, &values);
  return values;
}

// Holds the rules against one random graph of `op`; says whether they claim anything of it.
bool CheckOne(device::Device& device, OpType op, uint64_t seed) {
  Dice dice(seed);
  const Graph random = RandomCase(op, dice).graph;
  const auto chosen = ChooseSamples(random, dice);
  if (!chosen.has_value()) return false;
  const auto& [axes, samples] = *chosen;
  Graph graph = WithSamplesFirst(random, axes, RandomSources(random, 1));
  const std::vector<std::string> fronts = AppendFronts(random.outputs, samples, &graph);

  std::optional<std::pair<NamedTensors, NamedTensors>> runs;
  for (const std::string& front : fronts) {
    if (!RowsFollowSamples(graph, front, samples)) continue;
    if (!runs.has_value()) runs = {RunWithFirst(device, graph, 1), RunWithFirst(device, graph, 2)};
    const auto bytes = runs->first.at(front).bytes(), others = runs->second.at(front).bytes();
    const size_t sample = bytes.size() / static_cast<size_t>(samples);
    INFO(front << " of " << samples << " samples");
    CHECK(std::memcmp(bytes.data() + sample, others.data() + sample, bytes.size() - sample) == 0);
  }
  return runs.has_value();
}

TEST_CASE("samples apart: where it is said, the others of a batch change no bit, for every op", "[graph]") {
  const auto device = MakeTestedDevice(TestedDevice::kReference);
  std::set<std::string> followed;
  for (const OpType op : AllOps()) {
    if (op == OpType::kMaskedSum || op == OpType::kCountCorrect) continue;
    for (int k = 0; k < kGraphsPerOp; ++k) {
      const uint64_t seed = static_cast<uint64_t>(k) * 1000 + static_cast<uint64_t>(op);
      INFO(OpName(op) << ", seed " << seed);
      if (CheckOne(*device, op, seed)) followed.insert(std::string(OpName(op)));
    }
  }

  for (const char* const op : kOpsOfModels) {
    INFO(op);
    CHECK(followed.contains(op));
  }
}

}  // namespace
}  // namespace lockstep
