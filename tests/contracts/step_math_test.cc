// The arithmetic of a step on every device that computes on the host, also where work is postponed and memory hidden.
#include <catch2/catch.hpp>

#include "tests/contracts/step_math_contract.h"
#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"

namespace lockstep {
namespace {

TEST_CASE("step math: every device gives the bits of the functions for host memory", "[device]") {
  const auto kind = GENERATE(device::DeviceKind::kReference, device::DeviceKind::kCpu);
  const int wrapped = GENERATE(0, 1, 2);
  CAPTURE(static_cast<int>(kind), wrapped);
  auto device = device::MakeDevice(kind, {}).value();
  if (wrapped > 0) {
    const auto memory = wrapped == 1 ? device::DeferredMemory::kOfInner : device::DeferredMemory::kHidden;
    device = device::MakeDeferredDevice(std::move(device), memory);
  }

  CheckExactSums(*device);
  CheckFloatSums(*device);
  CheckClip(*device);
  CheckUpdates(*device);
  CheckOrderOfNorms(*device);
  CheckOrderOfMeans(*device);
  CheckStatisticsAndOutputs(*device);
}

}  // namespace
}  // namespace lockstep
