// Kernels that are broken on purpose, and what the checker says of each. Every one of them computes on some GPU, on
// some day, what its author meant.
#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "worker/device/cuda/checker/broken_program.h"
#include "worker/device/cuda/runtime/launch.h"

namespace lockstep::device::cuda {
namespace {

using Catch::Matchers::Contains;

constexpr unsigned kThreads = 64;

// What is said when the kernel runs in two blocks of 64 threads, on zeroed memory of 1,024 numbers.
template <typename Kernel>
std::string SaidOfKernel(Kernel kernel, size_t shared_bytes = 0, bool zeroed = true) {
  return SaidBy([=] {
    (void)SelectDevice(0);
    const StreamHandle stream = *CreateStream();
    std::byte* const memory = *AllocateDevice(1024 * sizeof(float));
    if (zeroed) (void)Zero(stream, memory, 1024 * sizeof(float));
    const LaunchShape shape{.blocks = {2}, .threads = {kThreads}, .shared_bytes = shared_bytes};
    (void)Launch(stream, shape, kernel, reinterpret_cast<float*>(memory));
    (void)Synchronize(stream);
  });
}

__device__ unsigned Own() { return blockIdx.x * blockDim.x + threadIdx.x; }

// --- races ---

template <bool kBarrier>
__global__ void TurnKernel(float* out) {
  __shared__ float turned[kThreads];
  turned[threadIdx.x] = 1;
  if (kBarrier) __syncthreads();
  out[Own()] = turned[kThreads - 1 - threadIdx.x];
  if (kBarrier) __syncthreads();
}

TEST_CASE("checker: a thread that reads shared memory which another one wrote needs a barrier", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfKernel(&TurnKernel<true>).empty());
  const std::string said = SaidOfKernel(&TurnKernel<false>);
  CHECK_THAT(said, Contains("TurnKernel<false>") && Contains("broken_kernels_test.cc:"));
}

// The second round's writes meet the first round's reads.
template <bool kBarrier>
__global__ void TwoRoundsKernel(float* out) {
  float* shared = DynamicShared<float>();
  for (int round = 0; round < 2; ++round) {
    shared[threadIdx.x] = static_cast<float>(round);
    __syncthreads();
    out[Own()] += shared[(threadIdx.x + 1) % kThreads];
    if (kBarrier) __syncthreads();
  }
}

TEST_CASE("checker: a second round in shared memory begins behind a barrier", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfKernel(&TwoRoundsKernel<true>, kThreads * sizeof(float)).empty());
  CHECK_THAT(SaidOfKernel(&TwoRoundsKernel<false>, kThreads * sizeof(float)),
             Contains("a race: thread ") && Contains("of block 0 ") && Contains("of dynamic shared memory, in ") &&
                 Contains("; no barrier orders it after thread") && Contains("TwoRoundsKernel<false>"));
}

__global__ void SameValueKernel(float* out) {
  __shared__ float any;
  any = 1;
  __syncthreads();
  out[Own()] = any;
}

// What code.h has for it is no race, until somebody reads along.
template <bool kReads>
__global__ void StoreSameKernel(float* out) {
  StoreSame(out, 1.0f);
  if (kReads && Own() == 7) out[1] = out[0];
}

TEST_CASE("checker: two threads that write the same value race", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfKernel(&SameValueKernel),
             Contains("a race: ") && Contains("SameValueKernel(float*)::any") && Contains("which wrote it"));
  CHECK(SaidOfKernel(&StoreSameKernel<false>).empty());
  CHECK_THAT(SaidOfKernel(&StoreSameKernel<true>), Contains("a race: ") && Contains("StoreSameKernel<true>"));
}

// Lanes of a warp hand numbers to each other: over the warp's barrier, or by a shuffle, which orders no memory.
template <bool kBarrier>
__global__ void WarpKernel(float* out) {
  __shared__ float handed[kThreads];
  handed[threadIdx.x] = 1;
  if (kBarrier) {
    __syncwarp();
  } else {
    __shfl_xor_sync(kFullMask, 1.0f, 1);
  }
  out[Own()] = handed[threadIdx.x ^ 1];
}

// A barrier of each warp orders nothing between two of them.
__global__ void TwoWarpsKernel(float* out) {
  __shared__ float handed[kThreads];
  handed[threadIdx.x] = 1;
  __syncwarp();
  out[Own()] = handed[threadIdx.x ^ 32];
}

TEST_CASE("checker: __syncwarp orders the memory of one warp, and shuffles order none", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfKernel(&WarpKernel<true>).empty());
  CHECK_THAT(SaidOfKernel(&WarpKernel<false>), Contains("a race: ") && Contains("WarpKernel<false>"));
  CHECK_THAT(SaidOfKernel(&TwoWarpsKernel), Contains("TwoWarpsKernel"));
}

__global__ void NeighbourElementKernel(float* out) {
  out[Own()] += 1;
  __syncthreads();
  out[(Own() + 1) % (gridDim.x * blockDim.x)] += 1;
}

TEST_CASE("checker: nothing orders two blocks of a launch", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfKernel(&NeighbourElementKernel),
             Contains("a race: ") && Contains("of device memory") && Contains("; nothing orders it after thread"));
}

// Two threads read; the second one's write comes after its own read alone.
__global__ void ReadersKernel(float* out) {
  const float sum = out[0] + 1;
  if (blockIdx.x == 0 && threadIdx.x == kThreads - 1) out[0] = sum;
}

TEST_CASE("checker: a write that any of several readers may still follow is a race", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfKernel(&ReadersKernel), Contains("a race: ") && Contains("which read it"));
}

// Pieces of one byte beside each other are pieces of their own.
template <int kShared>
__global__ void BytesKernel(float* out) {
  auto* bytes = reinterpret_cast<uint8_t*>(out);
  bytes[Own() / kShared] = 1;
}

TEST_CASE("checker: threads may write neighbouring bytes, and not the same one", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfKernel(&BytesKernel<1>).empty());
  CHECK_THAT(SaidOfKernel(&BytesKernel<2>), Contains("a race: ") && Contains("writes 1 bytes"));
}

// --- memory that holds nothing ---

// The first block leaves what the second one needs.
__global__ void LeftBehindKernel(float* out) {
  __shared__ float left;
  if (blockIdx.x == 0 && threadIdx.x == 0) left = 1;
  if (blockIdx.x == 1 && threadIdx.x == 0) out[0] = left;
}

__global__ void AddOneKernel(float* out) { out[Own()] += 1; }

TEST_CASE("checker: memory that nothing has written holds nothing", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfKernel(&LeftBehindKernel), Contains("thread 0 of block 1 reads 4 bytes") &&
                                                  Contains("which nothing has written in this block") &&
                                                  Contains("LeftBehindKernel(float*)::left"));
  CHECK(SaidOfKernel(&AddOneKernel).empty());
  CHECK_THAT(SaidOfKernel(&AddOneKernel, 0, false), Contains("of device memory, which nothing has written"));
}

// --- bounds ---

__global__ void PastAllocationKernel(float* out) { out[960 + Own()] = 1; }
__global__ void PastDynamicKernel(float*) { DynamicShared<float>()[threadIdx.x + 1] = 1; }
__global__ void PastVariableKernel(float* out) {
  __shared__ float first[kThreads];
  __shared__ float second[kThreads];
  volatile unsigned at = threadIdx.x + 1;
  second[threadIdx.x] = 2;
  first[at] = 1;
  out[Own()] = second[threadIdx.x] + first[at];
}

float of_host[kThreads * 2] = {};
__global__ void HostMemoryKernel(float* out) { out[Own()] = of_host[Own()]; }

TEST_CASE("checker: a kernel that leaves its memory is found out by the byte", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfKernel(&PastAllocationKernel), Contains("of an allocation of 4096 bytes"));
  CHECK_THAT(SaidOfKernel(&PastDynamicKernel, kThreads * sizeof(float)),
             Contains("thread 63 of block 0 writes 4 bytes") && Contains("neither memory that a GPU sees"));
  CHECK_THAT(SaidOfKernel(&PastVariableKernel), Contains("index 64 of an array that is smaller"));
  of_host[0] = 1;
  CHECK_THAT(SaidOfKernel(&HostMemoryKernel), Contains("HostMemoryKernel"));
}

TEST_CASE("checker: a kernel that uses memory which was freed is found out", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidBy([] {
               (void)SelectDevice(0);
               const StreamHandle stream = *CreateStream();
               std::byte* const memory = *AllocateDevice(1024 * sizeof(float));
               FreeDevice(memory);
               (void)Launch(stream, {.blocks = {1}, .threads = {1}}, &AddOneKernel, reinterpret_cast<float*>(memory));
               (void)Synchronize(stream);
             }),
             Contains("which is not device memory, or not any more"));
}

// --- alignment ---

struct alignas(16) Four {
  float values[4];
};

__global__ void CrookedKernel(float* out) {
  if (Own() == 0) *reinterpret_cast<Four*>(out + 1) = Four();
}

TEST_CASE("checker: a vector of 16 bytes at an address of another kind is found out", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK_THAT(SaidOfKernel(&CrookedKernel),
             Contains("which is not aligned to 16 bytes") && Contains("broken_kernels_test.cc:"));
}

// --- shuffles ---

template <unsigned kMask>
__global__ void ShuffleKernel(float* out) {
  out[Own()] = __shfl_xor_sync(kMask, 1.0f, 16);
}

__global__ void EndedLaneKernel(float* out) {
  if (threadIdx.x == 5) return;
  out[Own()] = __shfl_xor_sync(kFullMask, 1.0f, 16);
}

TEST_CASE("checker: shuffles have full masks, and all lanes of their warp", "[cuda]") {
  if (!CheckerIsOn()) return;
  CHECK(SaidOfKernel(&ShuffleKernel<kFullMask>).empty());
  CHECK_THAT(SaidOfKernel(&ShuffleKernel<0xffffu>), Contains("a shuffle whose mask is not full"));
  CHECK_THAT(SaidOfKernel(&EndedLaneKernel), Contains("threads wait for others that ended or wait elsewhere"));
}

}  // namespace
}  // namespace lockstep::device::cuda
