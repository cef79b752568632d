// The CUDA device in host execution: the suite of all devices, and its own kernels against the reference's, op by op.
#include <catch2/catch.hpp>
#include <set>

#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/device_contract.h"
#include "tests/contracts/step_math_contract.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/devices.h"

namespace lockstep {

std::vector<DeviceCandidate> DeviceCandidates() {
  return {{"cuda on host", [] { return Must(device::MakeCudaDevice({})); }}};
}

namespace {

using device::Device;
using device::DeviceKind;

// Ops without a kernel so far.
const std::set<OpType>& Unserved() {
  static const auto* ops = new std::set<OpType>{
      // Rows, losses, rankings.
      OpType::kCumSum,
      OpType::kTopK,
      OpType::kArgMax,
      OpType::kArgMin,
      OpType::kSoftmax,
      OpType::kSoftmaxCrossEntropyLoss,
      OpType::kBatchNormalization,
      OpType::kReduceSum,
      OpType::kReduceMean,
      OpType::kReduceMax,
      OpType::kReduceMin,
      OpType::kReduceProd,
      OpType::kReduceL1,
      OpType::kReduceL2,
      OpType::kReduceLogSum,
      OpType::kReduceLogSumExp,
      OpType::kReduceSumSquare,
      OpType::kLogSoftmax,
      OpType::kNegativeLogLikelihoodLoss,
      OpType::kLayerNormalization,
      OpType::kRmsNormalization,
      OpType::kGroupNormalization,
      OpType::kInstanceNormalization,
      OpType::kLpNormalization,
      OpType::kSoftmaxGrad,
      OpType::kSoftmaxCrossEntropyLossGrad,
      OpType::kLossWeights,
      OpType::kPointwiseLoss,
      OpType::kPointwiseLossGrad,
      OpType::kBatchNormTraining,
      OpType::kBatchNormGrad,
      OpType::kBatchNormFrozenGrad,
      OpType::kReduceGrad,
      OpType::kLogSoftmaxGrad,
      OpType::kNegativeLogLikelihoodLossGrad,
      OpType::kLayerNormGrad,
      OpType::kRmsNormGrad,
      OpType::kGroupNormGrad,
      OpType::kLpNormGrad,
      OpType::kMaskedSum,
      OpType::kCountCorrect,
      // Products, windows, attention.
  };
  return *ops;
}

TEST_CASE("device on host: own kernels compute what the reference computes, for every op over random shapes",
          "[cuda]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));

  for (const OpType op : AllOps()) {
    if (Unserved().contains(op)) continue;
    for (const uint64_t seed : Seeds()) {
      INFO("LOCKSTEP_TEST_SEED=" << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      const DeviceCase c = RandomCase(op, dice);
      const Values expected = RunCase(*reference, c.graph, seed, false);
      const Values got = RunCase(*cuda, c.graph, seed, false);
      CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
      CHECK(got == RunCase(*cuda, c.graph, seed, false));
    }
  }
}

TEST_CASE("device on host: the arithmetic of a step gives the bits of the functions for host memory", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({}));

  CheckExactSums(*cuda);
  CheckFloatSums(*cuda);
  CheckClip(*cuda);
  CheckUpdates(*cuda);
  CheckStatisticsAndOutputs(*cuda);
}

TEST_CASE("device on host: sharing memory changes no bit, for every op", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({}));

  for (const OpType op : AllOps()) {
    if (Unserved().contains(op)) continue;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      CheckSharing(*cuda, RandomCase(op, dice), seed);
    }
  }
}

}  // namespace
}  // namespace lockstep
