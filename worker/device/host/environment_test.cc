#include "worker/device/host/environment.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <limits>
#include <string>

namespace lockstep::device {
namespace {

TEST_CASE("environment: what kernel libraries read is removed, the rest stays", "[device]") {
  ::setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
  ::setenv("OMP_NUM_THREADS", "7", 1);
  ::setenv("NVIDIA_TF32_OVERRIDE", "1", 1);
  ::setenv("COMPLETELY_OTHER", "stays", 1);

  const ClearedEnvironment first = ClearKernelEnvironment();
  const ClearedEnvironment second = ClearKernelEnvironment();

  CHECK(first.must_restart);
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS", "NVIDIA_TF32_OVERRIDE"}) {
    CHECK(std::count(first.removed.begin(), first.removed.end(), name) == 1);
    CHECK(::getenv(name) == nullptr);
  }
  CHECK(std::string(::getenv("COMPLETELY_OTHER")) == "stays");
  CHECK(std::string(::getenv("OMP_WAIT_POLICY")) == "passive");
  // A process that executes itself again is not asked to do so once more.
  CHECK_FALSE(second.must_restart);
  CHECK(second.removed.empty());
}

TEST_CASE("environment: what would overrule how NCCL is used is gone, and how it connects stays", "[device]") {
  ::setenv("NCCL_COMM_BLOCKING", "1", 1);
  ::setenv("NCCL_COMM_ID", "10.0.0.1:2000", 1);
  ::setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  ::setenv("NCCL_SOCKET_IFNAME", "wg0", 1);

  (void)ClearKernelEnvironment();

  CHECK(std::string(::getenv("NCCL_COMM_BLOCKING")) == "0");
  CHECK(::getenv("NCCL_COMM_ID") == nullptr);
  CHECK(::getenv("CUDA_LAUNCH_BLOCKING") == nullptr);
  CHECK(std::string(::getenv("NCCL_SOCKET_IFNAME")) == "wg0");
}

TEST_CASE("environment: denormals are zero once they are flushed", "[device]") {
  FlushDenormals();

  volatile float smallest = std::numeric_limits<float>::min();
  volatile float half = 0.5f;
  const float result = smallest * half;

  CHECK(result == 0.0f);
}

}  // namespace
}  // namespace lockstep::device
