// The CUDA device in host execution: the suite of all devices, and its own kernels against the reference's, op by op.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/device_contract.h"
#include "tests/contracts/step_math_contract.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/plan/plan.h"

namespace lockstep {

std::vector<DeviceCandidate> DeviceCandidates() {
  return {{"cuda on host", [] { return Must(device::MakeCudaDevice({})); }}};
}

namespace {

using device::Device;
using device::DeviceKind;
using worker::Plan;

TEST_CASE("device on host: own kernels compute what the reference computes, for every op over random shapes",
          "[cuda]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));

  for (const OpType op : AllOps()) {
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

TEST_CASE("device on host: a pass whose inputs are pinned copies nothing from or to pageable memory", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({}));
  Dice dice(1000);
  const auto plan = Must(Plan::Make(cuda.get(), RandomCase(OpType::kDropoutTraining, dice).graph, {}, {}));
  std::vector<std::unique_ptr<device::Buffer>> pinned;
  std::vector<worker::InputBytes> inputs;
  for (const Tensor& tensor : RandomInputs(plan->inputs(), 1000, false)) {
    pinned.push_back(Must(cuda->AllocateHost(tensor.bytes().size())));
    std::memcpy(pinned.back()->address(), tensor.data(), tensor.bytes().size());
    inputs.emplace_back(pinned.back()->address(), pinned.back()->size());
  }
  const int64_t before = device::cuda::HostPageableCopies();

  for (int pass = 0; pass < 3; ++pass) MustOk(plan->RunPass(inputs, {.seed = 1, .step = 2, .pass = pass}));

  CHECK(device::cuda::HostPageableCopies() == before);
  MustOk(plan->Synchronize());
}

TEST_CASE("device on host: a Relu fused behind a batch norm or a sum has the bits of one that is not", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({}));
  for (const OpType op : {OpType::kAdd, OpType::kBatchNormalization, OpType::kBatchNormTraining}) {
    for (const uint64_t seed : Seeds()) {
      INFO("LOCKSTEP_TEST_SEED=" << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      Graph apart = RandomCase(op, dice).graph;
      const std::string y = apart.nodes.back().outputs[0];
      if (apart.values.at(y).dtype != DType::kF32) continue;
      MustOk(AppendNode(&apart, {"relu", OpType::kRelu, {y}, {"relu of y"}, NoAttributes{}}));
      apart.outputs = {"relu of y", y};  // what leaves the graph is not fused
      Graph fused = apart;
      fused.outputs.pop_back();
      REQUIRE(ChoicesOf(*cuda, fused).size() + 1 == ChoicesOf(*cuda, apart).size());

      CHECK(RunCase(*cuda, fused, seed, false).at("relu of y") == RunCase(*cuda, apart, seed, false).at("relu of y"));
    }
  }
}

TEST_CASE("device on host: buffers keep to the limit of memory, and give back what they took", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({.memory_limit = 1 << 20}));
  CHECK(cuda->info().memory == 1 << 20);

  auto most = Must(cuda->Allocate(1000000));
  const auto refused = cuda->Allocate(50000);
  CHECK(absl::IsResourceExhausted(refused.status()));
  CHECK_THAT(std::string(refused.status().message()), Catch::Matchers::Contains("resources.gpu_memory"));
  most = nullptr;
  CHECK(cuda->Allocate(1 << 20).ok());
}

TEST_CASE("device on host: the arithmetic of a step gives the bits of the functions for host memory", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({}));

  CheckExactSums(*cuda);
  CheckFloatSums(*cuda);
  CheckClip(*cuda);
  CheckUpdates(*cuda);
  CheckOrderOfNorms(*cuda);
  CheckOrderOfMeans(*cuda);
  CheckStatisticsAndOutputs(*cuda);
}

TEST_CASE("device on host: sharing memory changes no bit, for every op", "[cuda]") {
  const auto cuda = Must(device::MakeCudaDevice({}));

  for (const OpType op : AllOps()) {
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      INFO("seed " << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      CheckSharing(*cuda, RandomCase(op, dice), seed);
    }
  }
}

}  // namespace
}  // namespace lockstep
