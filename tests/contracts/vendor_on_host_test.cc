// The CUDA device in host execution with NVIDIA's libraries, of which only what needs a GPU is replaced: their kernels
// against the reference's, over random shapes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/graph/graph_editor.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/kernel.h"

namespace lockstep {
namespace {

using device::Device;
using device::DeviceKind;

constexpr int kServed = 12;
constexpr uint64_t kMostSeeds = 1000;

// The implementation that the device chooses for a node of a graph, or its reason.
std::string ChosenFor(Device& device, const Graph& graph, const Node& node,
                      device::Epilogue epilogue = device::Epilogue::kNone) {
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

std::string ChosenFor(Device& device, const Graph& graph, device::Epilogue epilogue = device::Epilogue::kNone) {
  return ChosenFor(device, graph, graph.nodes.back(), epilogue);
}

bool IsLibrarys(const std::string& implementation) {
  return absl::StartsWith(implementation, "cublaslt:") || absl::StartsWith(implementation, "cudnn:");
}

// The case with a Relu behind its only output.
DeviceCase WithRelu(DeviceCase c) {
  const std::string y = c.graph.outputs[0];
  c.graph.nodes.push_back({"relu", OpType::kRelu, {y}, {"relu of " + y}, NoAttributes{}});
  c.graph.outputs[0] = "relu of " + y;
  c.graph.values.clear();
  MustOk(InferShapes(&c.graph));
  return c;
}

// The case's only node between casts to and from BF16.
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

// Sums are those of float32; rounding one to BF16 may go the other way. `rounded_between`: so may a rounding of the
// sums before a bias is added.
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

}  // namespace

TEST_CASE("device: libraries compute in BF16 what the reference computes", "[device]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (const OpType op : {OpType::kGemm, OpType::kMatMul, OpType::kBatchMatMul, OpType::kConv, OpType::kConvTranspose,
                          OpType::kConvGradInput, OpType::kConvGradWeight}) {
    int served = 0;
    for (uint64_t seed = 1; seed <= kMostSeeds && served < kServed / 2; ++seed) {
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      if (c.graph.nodes.size() != 1) continue;
      const Graph graph = InBf16(c.graph);
      const auto node =
          std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& each) { return each.op == op; });
      const std::string chosen = ChosenFor(*cuda, graph, *node);
      INFO("seed " << seed << " " << OpName(op) << " by " << chosen);
      if (!IsLibrarys(chosen)) continue;
      ++served;
      CompareRounded(RunCase(*reference, graph, seed, false), RunCase(*cuda, graph, seed, false),
                     RunCase(*reference, graph, seed, true), op == OpType::kConvTranspose);
    }
    INFO(OpName(op));
    CHECK(served == kServed / 2);
  }
}

TEST_CASE("device: libraries compute what the reference computes, for every op that they serve", "[device]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (const OpType op : {OpType::kGemm, OpType::kMatMul, OpType::kBatchMatMul, OpType::kConv, OpType::kConvTranspose,
                          OpType::kConvGradInput, OpType::kConvGradWeight}) {
    int served = 0;
    // Most random convolutions have padding that cuDNN does not take.
    for (uint64_t seed = 1; seed <= kMostSeeds && served < kServed; ++seed) {
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const std::string chosen = ChosenFor(*cuda, c.graph);
      INFO("seed " << seed << " " << OpName(op) << " by " << chosen);
      if (!IsLibrarys(chosen)) continue;
      ++served;
      const Values expected = RunCase(*reference, c.graph, seed, false);
      const Values got = RunCase(*cuda, c.graph, seed, false);
      CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
    }
    INFO(OpName(op));
    CHECK(served == kServed);
  }
}

TEST_CASE("device: a Relu that a library fuses behind its op is the reference's", "[device]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (const OpType op : {OpType::kGemm, OpType::kConv}) {
    int fused = 0;
    for (uint64_t seed = 1; seed <= kMostSeeds && fused < kServed; ++seed) {
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase plain = RandomCase(op, dice);
      if (!IsLibrarys(ChosenFor(*cuda, plain.graph, device::Epilogue::kRelu))) continue;
      INFO("seed " << seed << " " << OpName(op));
      ++fused;
      const DeviceCase c = WithRelu(plain);
      const Values expected = RunCase(*reference, c.graph, seed, false);
      CompareCase(c, expected, RunCase(*cuda, c.graph, seed, false), RunCase(*reference, c.graph, seed, true));
    }
    INFO(OpName(op));
    CHECK(fused == kServed);
  }
}

TEST_CASE("device: a product may lie where the matrix that is added to it lay", "[device]") {
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (uint64_t seed = 1; seed <= kServed; ++seed) {
    INFO("seed " << seed);
    Dice dice(seed * 100 + static_cast<uint64_t>(OpType::kGemm));
    CheckSharing(*cuda, RandomCase(OpType::kGemm, dice), seed);
  }
}

}  // namespace lockstep
