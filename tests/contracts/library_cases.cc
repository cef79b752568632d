#include "tests/contracts/library_cases.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "worker/device/kernel.h"

namespace lockstep {

std::string ChosenFor(device::Device& device, const Graph& graph, const Node& node, device::Epilogue epilogue) {
  device::KernelRequest request{.node = &node, .epilogue = epilogue};
  for (const auto& [names, operands] :
       {std::pair(&node.inputs, &request.inputs), std::pair(&node.outputs, &request.outputs)}) {
    for (const std::string& name : *names) {
      if (name.empty()) {
        operands->push_back({.present = false});
        continue;
      }
      operands->push_back({.dtype = graph.values.at(name).dtype, .shape = graph.values.at(name).shape});
    }
  }
  const auto kernel = device.MakeKernel(request);
  return kernel.ok() ? (*kernel)->implementation() : std::string(kernel.status().message());
}

std::string ChosenFor(device::Device& device, const Graph& graph, device::Epilogue epilogue) {
  return ChosenFor(device, graph, graph.nodes.back(), epilogue);
}

bool IsLibrarys(const std::string& implementation) {
  return absl::StartsWith(implementation, "cublaslt:") || absl::StartsWith(implementation, "cudnn:");
}

Graph InBf16(const Graph& graph) {
  Graph narrow = graph;
  narrow.nodes.clear();
  narrow.outputs.clear();
  narrow.values.clear();
  Node node = graph.nodes.back();
  const auto cast = [&](const std::string& from, const std::string& to, DType dtype) {
    narrow.nodes.push_back({"to " + to, OpType::kCast, {from}, {to}, CastAttributes{dtype}});
  };
  for (std::string& input : node.inputs) {
    if (input.empty()) continue;
    cast(input, "narrow " + input, DType::kBF16);
    input = "narrow " + input;
  }
  const std::vector<std::string> outputs = node.outputs;
  for (std::string& output : node.outputs) output = output.empty() ? "" : "narrow " + output;
  narrow.nodes.push_back(node);
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    cast("narrow " + output, output, DType::kF32);
    narrow.outputs.push_back(output);
  }
  MustOk(InferShapes(&narrow));
  return narrow;
}

void CompareRounded(const Values& expected, const Values& got, const Values& magnitudes, bool rounded_between) {
  const double margin = rounded_between ? 0x1p-8 : 1e-5;
  for (const auto& [name, values] : expected) {
    INFO(name);
    for (size_t i = 0; i < values.size(); ++i) {
      CAPTURE(i, values[i], got.at(name)[i]);
      REQUIRE(std::fabs(values[i] - got.at(name)[i]) <=
              0x1p-7 * std::fabs(values[i]) + margin * magnitudes.at(name)[i]);
    }
  }
}

int CompareLibrariesInBf16(device::Device& reference, device::Device& cuda, OpType op, int most) {
  int served = 0;
  for (uint64_t seed = 1; seed <= kMostLibrarySeeds && served < most; ++seed) {
    Dice dice(seed * 100 + static_cast<uint64_t>(op));
    const DeviceCase c = RandomCase(op, dice);
    if (c.graph.nodes.size() != 1) continue;
    const Graph graph = InBf16(c.graph);
    const auto node =
        std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& each) { return each.op == op; });
    const std::string chosen = ChosenFor(cuda, graph, *node);
    INFO("seed " << seed << " " << OpName(op) << " by " << chosen);
    if (!IsLibrarys(chosen)) continue;
    ++served;
    const Values got = RunCase(cuda, graph, seed, false);
    CompareRounded(RunCase(reference, graph, seed, false), got, RunCase(reference, graph, seed, true),
                   op == OpType::kConvTranspose);
    CHECK(got == RunCase(cuda, graph, seed, false));
  }
  return served;
}

namespace {

struct AttentionCase {
  int64_t heads;
  int64_t key_heads;
  int64_t length;
  int64_t size;
  bool causal;
};

Graph AttentionGraph(const AttentionCase& c) {
  Graph graph;
  const Shape of_queries = {2, c.heads, c.length, c.size}, of_keys = {2, c.key_heads, c.length, c.size};
  graph.inputs = {{"dy", DType::kF32, of_queries},
                  {"q", DType::kF32, of_queries},
                  {"k", DType::kF32, of_keys},
                  {"v", DType::kF32, of_keys}};
  const auto cast = [&](const std::string& from, const std::string& to, DType dtype) {
    MustOk(AppendNode(&graph, {"to " + to, OpType::kCast, {from}, {to}, CastAttributes{dtype}}));
  };
  for (const GraphInput& input : graph.inputs) {
    graph.values[input.name] = {input.dtype, input.shape};
    cast(input.name, "narrow " + input.name, DType::kBF16);
  }
  AttentionAttributes attributes;
  attributes.scale = 0.25;
  attributes.causal = c.causal;
  MustOk(AppendNode(
      &graph,
      {"forward", OpType::kAttention, {"narrow q", "narrow k", "narrow v"}, {"narrow y", "statistics"}, attributes}));
  MustOk(AppendNode(&graph, {"backward",
                             OpType::kAttentionGrad,
                             {"narrow dy", "narrow q", "narrow k", "narrow v", "narrow y", "statistics"},
                             {"narrow dq", "narrow dk", "narrow dv"},
                             attributes}));
  for (const std::string output : {"y", "dq", "dk", "dv"}) {
    cast("narrow " + output, output, DType::kF32);
    graph.outputs.push_back(output);
  }
  return graph;
}

}  // namespace

void CompareAttentionInBf16(device::Device& reference, device::Device& cuda) {
  for (const AttentionCase& c : {AttentionCase{2, 2, 128, 64, true}, AttentionCase{2, 2, 70, 64, false},
                                 AttentionCase{4, 2, 96, 40, true}, AttentionCase{2, 1, 33, 128, false}}) {
    CAPTURE(c.heads, c.key_heads, c.length, c.size, c.causal);
    const Graph graph = AttentionGraph(c);
    for (const Node& node : graph.nodes) {
      if (node.op != OpType::kCast) REQUIRE(IsLibrarys(ChosenFor(cuda, graph, node)));
    }
    const Values expected = RunCase(reference, graph, 1, false), got = RunCase(cuda, graph, 1, false);
    // Weights may be rounded to BF16 in between. In the gradients of Q and K products of dY and V cancel.
    double largest = 0;
    for (const double value : expected.at("dv")) largest = std::max(largest, std::fabs(value));
    for (const auto& [name, values] : expected) {
      for (size_t i = 0; i < values.size(); ++i) {
        CAPTURE(name, i, values[i], got.at(name)[i]);
        REQUIRE(std::fabs(values[i] - got.at(name)[i]) <= 0x1p-6 * largest);
      }
    }
    CHECK(got == RunCase(cuda, graph, 1, false));
  }
}

}  // namespace lockstep
