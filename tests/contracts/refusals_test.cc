// A device that does not serve a node by what it prefers for the op says why.
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "common/graph/ops/attributes.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/run_nodes.h"
#include "worker/device/device.h"
#include "worker/device/kernel.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using device::KernelRequest;
using device::Operand;
using device::Refusal;

// The last node of a random graph, which may be asked for with operands of other types.
struct Asked {
  explicit Asked(OpType op, uint64_t seed = 1) {
    Dice dice(seed * 100 + static_cast<uint64_t>(op));
    graph = RandomCase(op, dice).graph;
    request.node = &graph.nodes.back();
    for (const std::string& name : request.node->inputs) request.inputs.push_back(OperandOf(name));
    for (const std::string& name : request.node->outputs) request.outputs.push_back(OperandOf(name));
  }

  Operand OperandOf(const std::string& name) const {
    if (name.empty()) return {.present = false};
    return {.dtype = graph.values.at(name).dtype, .shape = graph.values.at(name).shape};
  }

  // Replaces operands of F32 by others.
  void Take(DType dtype) {
    for (auto* operands : {&request.inputs, &request.outputs}) {
      for (Operand& operand : *operands) {
        if (operand.dtype == DType::kF32) operand.dtype = dtype;
      }
    }
  }

  absl::StatusOr<std::string> ServedBy(device::Device& device) {
    refusals.clear();
    request.refusals = &refusals;
    auto kernel = device.MakeKernel(request);
    if (!kernel.ok()) return kernel.status();
    return (*kernel)->implementation();
  }

  Graph graph;
  KernelRequest request;
  std::vector<Refusal> refusals;
};

TEST_CASE("refusals: where the cpu serves floats by a kernel of its own, it says why not doubles", "[device]") {
  const auto cpu = MakeTestedDevice(TestedDevice::kCpu);
  std::set<std::string> refused;

  for (const OpType op : AllOps()) {
    for (const uint64_t seed : {1, 2, 3}) {
      INFO(OpName(op) << ", seed " << seed);
      Asked asked(op, seed);
      const auto of_floats = asked.ServedBy(*cpu);
      REQUIRE(of_floats.ok());
      if (*of_floats == "reference") continue;
      asked.Take(DType::kF64);
      const auto of_doubles = asked.ServedBy(*cpu);
      if (!of_doubles.ok() || *of_doubles != "reference") continue;
      REQUIRE_FALSE(asked.refusals.empty());
      for (const Refusal& refusal : asked.refusals) CHECK_FALSE(refusal.reason.empty());
      refused.insert(std::string(OpName(op)));
    }
  }

  // Most ops: what only moves elements serves doubles too.
  CHECK(refused.size() > 100);
  for (const char* op : {"Relu", "Conv", "Gemm", "TopK", "ArgMax", "Trilu", "Pow"}) {
    INFO(op);
    CHECK(refused.contains(op));
  }
}

TEST_CASE("refusals: a node of too many dimensions for the cpu's own loops says so", "[device]") {
  const auto cpu = MakeTestedDevice(TestedDevice::kCpu);
  const Node node{"sum", OpType::kAdd, {"a", "b"}, {"y"}, NoAttributes{}};
  // Neighbours take turns in repeating, so that none lie together.
  const Shape a = {2, 1, 2, 1, 2, 1, 2, 1}, b = {1, 2, 1, 2, 1, 2, 1, 2}, y = {2, 2, 2, 2, 2, 2, 2, 2};
  std::vector<Refusal> refusals;
  KernelRequest request;
  request.node = &node;
  request.inputs = {{.shape = a}, {.shape = b}};
  request.outputs = {{.shape = y}};
  request.refusals = &refusals;

  const auto kernel = cpu->MakeKernel(request);

  REQUIRE(kernel.ok());
  CHECK((*kernel)->implementation() == "reference");
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].implementation == "own kernels");
  CHECK_THAT(refusals[0].reason, Contains("fewer dimensions"));
}

TEST_CASE("refusals: oneDNN says why a product of doubles is the reference's", "[device]") {
  const auto cpu = MakeTestedDevice(TestedDevice::kCpu);
  Asked asked(OpType::kMatMul);
  asked.Take(DType::kF64);

  const auto served = asked.ServedBy(*cpu);

  REQUIRE(served.ok());
  CHECK(*served == "reference");
  REQUIRE(asked.refusals.size() == 1);
  CHECK(asked.refusals[0].implementation == "oneDNN");
}

TEST_CASE("refusals: what CUDA's own kernels do not serve ends with their reason, or is widened with it", "[cuda]") {
  const auto cuda = MakeTestedDevice(TestedDevice::kCudaOnHost);
  int refused = 0;
  int widened = 0;

  for (const OpType op : AllOps()) {
    for (const DType dtype : {DType::kF64, DType::kBF16}) {
      INFO(OpName(op) << " of " << DTypeName(dtype));
      Asked asked(op);
      asked.Take(dtype);
      const auto served = asked.ServedBy(*cuda);
      if (!served.ok()) {
        CHECK(absl::IsUnimplemented(served.status()));
        CHECK_THAT(std::string(served.status().message()), Contains("own kernels: "));
        ++refused;
      } else if (absl::StartsWith(*served, "widened:")) {
        REQUIRE_FALSE(asked.refusals.empty());
        CHECK(asked.refusals[0].implementation == "own kernels");
        ++widened;
      }
    }
  }

  CHECK(refused > 20);
  CHECK(widened > 20);
}

}  // namespace
}  // namespace lockstep
