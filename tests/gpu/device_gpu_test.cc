// The CUDA device on a GPU: the suite of all devices, and what it computes against the reference, op by op. Needs the
// library for CUDA (beside the program, or LOCKSTEP_CUDA_LIBRARY) and a GPU; LOCKSTEP_TEST_GPU says which (0).
#include <catch2/catch.hpp>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/device_contract.h"
#include "tests/contracts/library_cases.h"
#include "worker/device/choice/cuda_loader.h"
#include "worker/device/choice/devices.h"

namespace lockstep {
namespace {

using device::Device;
using device::DeviceKind;

std::unique_ptr<Device> Gpu() {
  device::DeviceOptions options;
  if (const char* const text = std::getenv("LOCKSTEP_TEST_GPU"); text != nullptr) {
    REQUIRE(absl::SimpleAtoi(text, &options.ordinal));
  }
  return Must(device::MakeDevice(DeviceKind::kCuda, options));
}

}  // namespace

std::vector<DeviceCandidate> DeviceCandidates() {
  return {{"cuda", [] { return Gpu(); }}};
}

namespace {

TEST_CASE("device on a GPU: every op computes what the reference computes, over random shapes", "[gpu]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto gpu = Gpu();

  for (const OpType op : AllOps()) {
    DYNAMIC_SECTION(OpName(op)) {
      for (const uint64_t seed : Seeds()) {
        INFO("LOCKSTEP_TEST_SEED=" << seed);
        Dice dice(seed * 100 + static_cast<uint64_t>(op));
        const DeviceCase c = RandomCase(op, dice);
        const Values expected = RunCase(*reference, c.graph, seed, false);
        const Values got = RunCase(*gpu, c.graph, seed, false);
        CompareCase(c, expected, got, c.sums_of_products ? RunCase(*reference, c.graph, seed, true) : expected);
        CHECK(got == RunCase(*gpu, c.graph, seed, false));
      }
    }
  }
}

TEST_CASE("device on a GPU: libraries compute in BF16 what the reference computes, the same bits each time", "[gpu]") {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto gpu = Gpu();

  for (const OpType op : kLibraryOps) {
    INFO(OpName(op));
    CHECK(CompareLibrariesInBf16(*reference, *gpu, op, 12) == 12);
  }
}

TEST_CASE("device on a GPU: attention by a library in BF16 is the reference's, the same bits each time", "[gpu]") {
  CompareAttentionInBf16(*Must(device::MakeDevice(DeviceKind::kReference, {})), *Gpu());
}

TEST_CASE("device on a GPU: sharing memory changes no bit, for every op", "[gpu]") {
  const auto gpu = Gpu();

  for (const OpType op : AllOps()) {
    DYNAMIC_SECTION(OpName(op)) {
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        INFO("seed " << seed);
        Dice dice(seed * 100 + static_cast<uint64_t>(op));
        CheckSharing(*gpu, RandomCase(op, dice), seed);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
