// `resources.gpu_memory` on a GPU that host execution plays: what CUDA itself takes counts, and limits hold side by
// side.
#include "worker/device/cuda/runtime/gpu_memory.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "worker/device/cuda/make_device.h"
#include "worker/device/cuda/runtime/host_gpu.h"

namespace lockstep::device {
namespace {

using Catch::Contains;

constexpr int64_t kMiB = int64_t{1} << 20;

TEST_CASE("GPU memory: a limit counts the context and what libraries load later", "[cuda]") {
  const bool measurable = GENERATE(true, false);
  CAPTURE(measurable);
  // Where it cannot be measured, the fixed number for a context stands in.
  cuda::SetHostGpu({.total = 64 * kMiB,
                    .context = 8 * kMiB,
                    .measurable = measurable,
                    .fixed = {.context = 9 * kMiB, .later = kMiB}});
  const int64_t left = 20 * kMiB - (measurable ? 8 : 9) * kMiB - kMiB;

  const auto device = MakeCudaDevice({.memory_limit = 20 * kMiB}).value();

  CHECK(device->info().memory == left);
  CHECK(absl::IsResourceExhausted(device->Allocate(static_cast<size_t>(left) + 1).status()));
  const auto all = device->Allocate(static_cast<size_t>(left));
  REQUIRE(all.ok());
  if (measurable) CHECK(cuda::MemoryOfProcess(0).value() == 8 * kMiB + left);
}

TEST_CASE("GPU memory: what is free is free of the context already, and buffers are not CUDA's own", "[cuda]") {
  cuda::SetHostGpu({.total = 64 * kMiB, .context = 8 * kMiB, .fixed = {.context = 9 * kMiB, .later = kMiB}});

  const auto first = MakeCudaDevice({}).value();
  CHECK(first->info().memory == (64 - 8 - 1) * kMiB);
  const auto buffer = first->Allocate(10 * kMiB).value();

  CHECK(cuda::MemoryOfCuda(0) == 9 * kMiB);
  CHECK(MakeCudaDevice({.memory_limit = 20 * kMiB}).value()->info().memory == 11 * kMiB);
  CHECK(MakeCudaDevice({}).value()->info().memory == (64 - 8 - 1 - 10) * kMiB);
}

TEST_CASE("GPU memory: a limit that does not hold CUDA itself is refused with both sizes", "[cuda]") {
  cuda::SetHostGpu({.total = 64 * kMiB, .context = 8 * kMiB, .fixed = {.context = 9 * kMiB, .later = kMiB}});

  const absl::Status refused = MakeCudaDevice({.memory_limit = 9 * kMiB}).status();

  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains("allows a worker 9437184 bytes") && Contains("CUDA itself takes 9437184"));
}

TEST_CASE("GPU memory: of two that share a GPU under limits neither takes what the other may", "[cuda]") {
  cuda::SetHostGpu({.total = 64 * kMiB, .context = 4 * kMiB});
  const auto one = MakeCudaDevice({.memory_limit = 30 * kMiB}).value();
  const auto other = MakeCudaDevice({.memory_limit = 30 * kMiB}).value();

  std::vector<std::unique_ptr<Buffer>> greedy;
  while (true) {
    auto buffer = one->Allocate(kMiB);
    if (!buffer.ok()) break;
    greedy.push_back(*std::move(buffer));
  }

  CHECK(greedy.size() == 26);
  CHECK(other->Allocate(26 * kMiB).ok());
}

}  // namespace
}  // namespace lockstep::device
