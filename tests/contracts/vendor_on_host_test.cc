// The CUDA device in host execution with NVIDIA's libraries, of which only what needs a GPU is replaced: their kernels
// against the reference's, over random shapes.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/graph_editor.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/library_cases.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"

namespace lockstep {
namespace {

using device::DeviceKind;

constexpr int kServed = 12;

// The case with a Relu behind its only output.
DeviceCase WithRelu(DeviceCase c) {
  const std::string y = c.graph.outputs[0];
  c.graph.nodes.push_back({"relu", OpType::kRelu, {y}, {"relu of " + y}, NoAttributes{}});
  c.graph.outputs[0] = "relu of " + y;
  c.graph.values.clear();
  MustOk(InferShapes(&c.graph));
  return c;
}

}  // namespace

TEST_CASE("device: libraries compute in BF16 what the reference computes", "[device]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (const OpType op : kLibraryOps) {
    INFO(OpName(op));
    CHECK(CompareLibrariesInBf16(*reference, *cuda, op, kServed / 2) == kServed / 2);
  }
}

TEST_CASE("device: attention by a library in BF16 is the reference's", "[device]") {
  CompareAttentionInBf16(*Must(device::MakeDevice(DeviceKind::kReference, {})), *Must(device::MakeCudaDevice({})));
}

TEST_CASE("device: libraries compute what the reference computes, for every op that they serve", "[device]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (const OpType op : kLibraryOps) {
    int served = 0;
    for (uint64_t seed = 1; seed <= kMostLibrarySeeds && served < kServed; ++seed) {
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
    for (uint64_t seed = 1; seed <= kMostLibrarySeeds && fused < kServed; ++seed) {
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
