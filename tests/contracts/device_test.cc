// What every device promises: the same suite for the reference, the CPU, and both behind a device that postpones
// everything until somebody waits. And the CPU's kernels against the reference's, op by op.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/device_contract.h"
#include "worker/device/choice/devices.h"
#include "worker/device/kernel.h"
#include "worker/fakes/deferred_device.h"

namespace lockstep {
namespace {

using device::Device;
using device::DeviceKind;

struct Candidate {
  const char* name;
  DeviceKind kind;
  bool deferred;
};

constexpr Candidate kCandidates[] = {{"reference", DeviceKind::kReference, false},
                                     {"cpu", DeviceKind::kCpu, false},
                                     {"deferred reference", DeviceKind::kReference, true},
                                     {"deferred cpu", DeviceKind::kCpu, true}};

std::unique_ptr<Device> Make(const Candidate& candidate, int threads = 1) {
  std::unique_ptr<Device> device = Must(device::MakeDevice(candidate.kind, {.threads = threads}));
  return candidate.deferred ? device::MakeDeferredDevice(std::move(device)) : std::move(device);
}

}  // namespace

std::vector<DeviceCandidate> DeviceCandidates() {
  std::vector<DeviceCandidate> candidates;
  for (const Candidate& c : kCandidates) candidates.push_back({c.name, [&c] { return Make(c); }, c.deferred});
  return candidates;
}

namespace {

TEST_CASE("device: an instruction set that this machine lacks is refused", "[device]") {
  for (const DeviceKind kind : {DeviceKind::kReference, DeviceKind::kCpu}) {
    const auto device = device::MakeDevice(kind, {.instruction_set = "sparc_v9"});
    REQUIRE(absl::IsInvalidArgument(device.status()));
    CHECK_THAT(std::string(device.status().message()), Catch::Matchers::Contains("sparc_v9"));
  }
  CHECK(absl::IsInvalidArgument(device::MakeDevice(DeviceKind::kCpu, {.threads = 0}).status()));
}

// --- op by op ---

TEST_CASE("device: the cpu computes what the reference computes, for every op over random shapes", "[device]") {
  const auto reference = Make(kCandidates[0]);
  const auto cpu = Make(kCandidates[1]);

  for (const OpType op : AllOps()) {
    for (const uint64_t seed : Seeds()) {
      INFO("LOCKSTEP_TEST_SEED=" << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const Values expected = RunCase(*reference, c.graph, seed, false);
      const Values got = RunCase(*cpu, c.graph, seed, false);
      CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
    }
  }
}

// The implementation that a device chooses for the last node of a graph.
std::string ChosenFor(Device& device, const Graph& graph) {
  const Node& node = graph.nodes.back();
  device::KernelRequest request{.node = &node};
  for (const auto& [names, operands] :
       {std::pair(&node.inputs, &request.inputs), std::pair(&node.outputs, &request.outputs)}) {
    for (const std::string& name : *names) {
      operands->push_back({.dtype = graph.values.at(name).dtype, .shape = graph.values.at(name).shape});
    }
  }
  return Must(device.MakeKernel(request))->implementation();
}

TEST_CASE("device: what networks spend their time in never falls to the reference on the cpu", "[device]") {
  const auto cpu = Make(kCandidates[1]);
  for (const OpType op :
       {OpType::kConv, OpType::kConvGradInput, OpType::kConvGradWeight, OpType::kConvTranspose, OpType::kMaxPool,
        OpType::kMaxPoolWithArgmax, OpType::kMaxPoolGrad, OpType::kAveragePool, OpType::kAveragePoolGrad,
        OpType::kGlobalAveragePool, OpType::kGlobalMaxPool, OpType::kBatchNormTraining, OpType::kBatchNormGrad,
        OpType::kBatchNormFrozenGrad, OpType::kLayerNormalization, OpType::kLayerNormGrad, OpType::kRmsNormalization,
        OpType::kRmsNormGrad}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      CHECK(ChosenFor(*cpu, c.graph) != "reference");
    }
  }
}

TEST_CASE("device: what stands around those never falls to the reference on the cpu, where it is F32", "[device]") {
  const auto cpu = Make(kCandidates[1]);
  for (const OpType op : {OpType::kReduceProd,
                          OpType::kReduceL1,
                          OpType::kReduceL2,
                          OpType::kReduceLogSum,
                          OpType::kReduceLogSumExp,
                          OpType::kReduceSumSquare,
                          OpType::kReduceGrad,
                          OpType::kTopK,
                          OpType::kArgMax,
                          OpType::kArgMin,
                          OpType::kCumSum,
                          OpType::kDepthToSpace,
                          OpType::kSpaceToDepth,
                          OpType::kTile,
                          OpType::kGatherElements,
                          OpType::kGatherElementsGrad,
                          OpType::kGatherND,
                          OpType::kGatherNDGrad,
                          OpType::kScatterElements,
                          OpType::kScatterElementsGrad,
                          OpType::kScatterND,
                          OpType::kScatterNDGrad,
                          OpType::kTrilu,
                          OpType::kReverseSequence,
                          OpType::kOneHot,
                          OpType::kPointwiseLoss,
                          OpType::kPointwiseLossGrad,
                          OpType::kNegativeLogLikelihoodLoss,
                          OpType::kSin,
                          OpType::kNegativeLogLikelihoodLossGrad,
                          OpType::kCos,
                          OpType::kTan,
                          OpType::kAtan,
                          OpType::kAtanGrad,
                          OpType::kAsinh,
                          OpType::kAcoshGrad,
                          OpType::kMinGrad,
                          OpType::kMaxGrad,
                          OpType::kLpNormalization,
                          OpType::kLpNormGrad,
                          OpType::kIsNaN,
                          OpType::kIsInf}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      CHECK(ChosenFor(*cpu, c.graph) != "reference");
    }
  }
}

TEST_CASE("device: several threads compute the same, and the same bits every time", "[device]") {
  const auto reference = Make(kCandidates[0]);
  const auto cpu = Make(kCandidates[1], 2);
  CHECK(cpu->info().threads == 2);

  for (const OpType op : AllOps()) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const Values expected = RunCase(*reference, c.graph, seed, false);
      const Values got = RunCase(*cpu, c.graph, seed, false);
      CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
      CHECK(got == RunCase(*cpu, c.graph, seed, false));
    }
  }
}

TEST_CASE("device: sharing memory changes no bit, for every op", "[device]") {
  const auto cpu = Make(kCandidates[1]);

  for (const OpType op : AllOps()) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      CheckSharing(*cpu, RandomCase(op, dice), seed);
    }
  }
}

TEST_CASE("device: postponing everything changes no bit, for every op", "[device]") {
  const auto at_once = Make(kCandidates[1]);
  const auto deferred = Make(kCandidates[3]);

  for (const OpType op : AllOps()) {
    INFO(OpName(op));
    Dice dice(static_cast<uint64_t>(op));
    const DeviceCase c = RandomCase(op, dice);
    CHECK(RunCase(*at_once, c.graph, 9, false) == RunCase(*deferred, c.graph, 9, false));
  }
}

}  // namespace
}  // namespace lockstep
