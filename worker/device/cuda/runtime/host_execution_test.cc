// CUDA's execution model on the host: barriers, shuffles, shared memory, streams, captures.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <csignal>
#include <latch>
#include <numeric>
#include <thread>
#include <vector>

#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/device/device_lost.h"

namespace lockstep::device::cuda {
namespace {

struct Memory {
  explicit Memory(int64_t count) : bytes(static_cast<size_t>(count) * sizeof(int)) {
    REQUIRE(SelectDevice(0).ok());
    address = reinterpret_cast<int*>(*AllocateDevice(bytes));
  }
  ~Memory() { FreeDevice(reinterpret_cast<std::byte*>(address)); }
  std::vector<int> Read(StreamHandle stream) const {
    std::vector<int> host(bytes / sizeof(int));
    REQUIRE(CopyToHost(stream, reinterpret_cast<std::byte*>(host.data()), raw(), bytes).ok());
    REQUIRE(Synchronize(stream).ok());
    return host;
  }
  std::byte* raw() const { return reinterpret_cast<std::byte*>(address); }
  size_t bytes;
  int* address;
};

struct OwnStream {
  OwnStream() {
    REQUIRE(SelectDevice(0).ok());
    handle = *CreateStream();
  }
  StreamHandle handle;
  ~OwnStream() { DestroyStream(handle); }
};

// Sums the numbers of the threads of a block: within warps by shuffles, then over warps in shared memory.
__global__ void BlockSumKernel(int* sums) {
  __shared__ int of_warp[32];
  int sum = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kFullMask, sum, distance);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    sum = 0;
    for (unsigned w = 0; w < blockDim.x / 32; ++w) sum += of_warp[w];
    sums[blockIdx.x] = sum;
  }
}

__global__ void MissedBarrierKernel(int* out) {
  if (threadIdx.x != 3) __syncthreads();
  out[threadIdx.x] = 1;
}

__global__ void PlacesKernel(int* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = static_cast<int>(block * 1000 + thread);
}

TEST_CASE("host execution: warps shuffle, blocks share memory and wait at barriers", "[cuda]") {
  OwnStream stream;
  Memory sums(5);

  REQUIRE(Launch(stream.handle, {.blocks = {5}, .threads = {96}}, &BlockSumKernel, sums.address).ok());

  std::vector<int> expected;
  for (int b = 0; b < 5; ++b) expected.push_back(96 * 96 * b + 96 * 95 / 2);
  CHECK(sums.Read(stream.handle) == expected);
}

TEST_CASE("host execution: every thread of every block runs at its place", "[cuda]") {
  OwnStream stream;
  Memory out(2 * 3 * 2 * 4 * 2 * 3);

  REQUIRE(Launch(stream.handle, {.blocks = {2, 3, 2}, .threads = {4, 2, 3}}, &PlacesKernel, out.address).ok());

  std::vector<int> expected;
  for (int block = 0; block < 12; ++block) {
    for (int thread = 0; thread < 24; ++thread) expected.push_back(block * 1000 + thread);
  }
  CHECK(out.Read(stream.handle) == expected);
}

// Whether `act` ends a process of its own by this signal.
template <typename Act>
bool EndsBy(int signal, Act act) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    for (const int caught : {SIGABRT, SIGSEGV}) std::signal(caught, SIG_DFL);
    act();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

TEST_CASE("host execution: a barrier that a thread misses ends the process", "[cuda]") {
  CHECK(EndsBy(SIGABRT, [] {
    OwnStream stream;
    Memory out(8);
    (void)Launch(stream.handle, {.blocks = {1}, .threads = {8}}, &MissedBarrierKernel, out.address);
    (void)Synchronize(stream.handle);
  }));
}

TEST_CASE("host execution: device memory cannot be touched by the host", "[cuda]") {
  CHECK(EndsBy(SIGSEGV, [] {
    Memory memory(8);
    *static_cast<volatile int*>(memory.address) = 1;
  }));
}

TEST_CASE("host execution: a copy that overlaps what it reads is refused", "[cuda]") {
  const Memory memory(64);
  const OwnStream stream;
  const size_t half = memory.bytes / 2;
  REQUIRE(Zero(stream.handle, memory.raw(), memory.bytes).ok());

  CHECK(CopyOnDevice(stream.handle, memory.raw() + half, memory.raw(), half).ok());
  CHECK_FALSE(CopyOnDevice(stream.handle, memory.raw() + half - 1, memory.raw(), half).ok());
  CHECK_FALSE(CopyOnDevice(stream.handle, memory.raw(), memory.raw() + 1, half).ok());
  CHECK_FALSE(CopyOnDevice(stream.handle, memory.raw(), memory.raw(), half).ok());
  CHECK(CopyOnDevice(stream.handle, memory.raw(), memory.raw(), 0).ok());
  CHECK(Synchronize(stream.handle).ok());
}

TEST_CASE("host execution: a capture is not run, and its replay is, as often as asked", "[cuda]") {
  OwnStream stream;
  OwnStream other;
  Memory value(1);
  REQUIRE(Zero(stream.handle, value.raw(), sizeof(int)).ok());
  int* const address = value.address;

  REQUIRE(BeginCapture(stream.handle).ok());
  REQUIRE(ForEach(
              stream.handle, 1, LS_KERNEL_LAMBDA(int64_t) { *address += 5; })
              .ok());
  const EventHandle event = *CreateEvent();
  REQUIRE(RecordEvent(event, other.handle).ok());
  CHECK_FALSE(RecordEvent(event, stream.handle).ok());
  CHECK_FALSE(StreamWaits(stream.handle, event).ok());
  const GraphHandle graph = *EndCapture(stream.handle);
  CHECK(value.Read(stream.handle) == std::vector<int>{0});
  REQUIRE(Replay(graph, stream.handle).ok());
  REQUIRE(Replay(graph, stream.handle).ok());

  CHECK(value.Read(stream.handle) == std::vector<int>{10});
  DestroyGraph(graph);
  DestroyEvent(event);
}

TEST_CASE("host execution: a stream that waits for an event goes on after it, and drops its work after a failure",
          "[cuda]") {
  OwnStream first;
  OwnStream second;
  Memory value(1);
  int* const address = value.address;
  const EventHandle event = *CreateEvent();

  REQUIRE(ForEach(
              first.handle, 1, LS_KERNEL_LAMBDA(int64_t) { *address = 1; })
              .ok());
  REQUIRE(RecordEvent(event, first.handle).ok());
  REQUIRE(StreamWaits(second.handle, event).ok());
  REQUIRE(ForEach(
              second.handle, 1, LS_KERNEL_LAMBDA(int64_t) { *address += 1; })
              .ok());
  CHECK(value.Read(second.handle) == std::vector<int>{2});

  const absl::Status lost = absl::InternalError("lost");
  REQUIRE(EnqueueFallible(first.handle, [&] { return lost; }).ok());
  CHECK(Synchronize(first.handle) == lost);
  CHECK(RecordEvent(event, first.handle) == lost);
  CHECK(WaitForEvent(event) == lost);
  CHECK(EventDone(event));
  DestroyEvent(event);
}

TEST_CASE("host execution: a mark behind work that fails ends with the failure, and tells it to streams that wait",
          "[cuda]") {
  const absl::Status lost = absl::InternalError("lost");
  OwnStream first;
  OwnStream second;
  const EventHandle event = *CreateEvent();
  std::latch recorded(1);

  REQUIRE(EnqueueFallible(first.handle, [&] {
            recorded.wait();
            return lost;
          }).ok());
  REQUIRE(RecordEvent(event, first.handle).ok());
  REQUIRE(StreamWaits(second.handle, event).ok());
  recorded.count_down();

  CHECK(WaitForEvent(event) == lost);
  CHECK(Synchronize(second.handle) == lost);
  DestroyEvent(event);
}

TEST_CASE("host execution: after an error that loses the device every call of the process fails with it", "[cuda]") {
  const absl::Status lost = MarkDeviceLost(absl::InternalError("lost"));
  {
    OwnStream first;
    OwnStream second;
    const EventHandle event = *CreateEvent();
    Memory memory(1);
    REQUIRE(RecordEvent(event, second.handle).ok());
    REQUIRE(EnqueueFallible(first.handle, [&] { return lost; }).ok());
    REQUIRE(Synchronize(first.handle) == lost);

    CHECK(Synchronize(second.handle) == lost);
    CHECK(Zero(second.handle, memory.raw(), memory.bytes) == lost);
    CHECK(RecordEvent(event, second.handle) == lost);
    CHECK(WaitForEvent(event) == lost);
    CHECK(EventDone(event));
    CHECK(AllocateDevice(1).status() == lost);
    CHECK(AllocatePinned(1).status() == lost);
    CHECK(CreateStream().status() == lost);
    CHECK(SelectDevice(0) == lost);
    DestroyEvent(event);
  }
  ForgetLostHostGpu();
  CHECK(SelectDevice(0).ok());
}

TEST_CASE("host execution: a stream takes 1,024 launches, and the next one waits for an earlier one to end", "[cuda]") {
  constexpr uint64_t kAll = kHostLaunches + 10;
  OwnStream stream;
  std::latch open(1);
  std::atomic<uint64_t> launched{0};
  std::atomic<bool> all_queued{true};
  std::thread launcher([&] {
    if (!SelectDevice(0).ok()) all_queued = false;
    for (uint64_t i = 0; i < kAll; ++i) {
      if (!Enqueue(stream.handle, [&] { open.wait(); }).ok()) all_queued = false;
      ++launched;
    }
  });

  while (launched < kAll && HostLaunchesWaiting() == 0) std::this_thread::yield();
  const uint64_t before = launched;
  open.count_down();
  launcher.join();

  CHECK(before == kHostLaunches);
  CHECK(all_queued);
  CHECK(HostLaunchesWaiting() == 0);
  CHECK(Synchronize(stream.handle).ok());
}

}  // namespace
}  // namespace lockstep::device::cuda
