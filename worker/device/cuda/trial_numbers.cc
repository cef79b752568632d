#include "worker/device/cuda/trial_numbers.h"

#include <algorithm>
#include <bit>

#include "common/status/status_macros.h"
#include "common/tensor/bf16.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"

namespace lockstep::device::cuda {
namespace {

__device__ float NumberAt(int64_t i) {
  auto bits = static_cast<uint32_t>(i) * 2654435761u;
  bits ^= bits >> 15;
  return 0.5f + static_cast<float>(bits >> 9) * 0x1p-24f;
}

template <typename T>
absl::Status Fill(StreamHandle stream, int64_t count, std::byte* elements) {
  T* const to = reinterpret_cast<T*>(elements);
  return ForEach(
      stream, count, LS_KERNEL_LAMBDA(int64_t i) { to[i] = T(NumberAt(i)); });
}

__device__ uint64_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
__device__ uint64_t BitsOf(Bf16 value) { return value.bits; }

template <typename T>
absl::Status Look(StreamHandle stream, int64_t count, const std::byte* elements, float* sample, uint64_t* sums) {
  const T* const from = reinterpret_cast<const T*>(elements);
  const int64_t taken = std::min(count, kTrialSample);
  const int64_t step = count / std::max<int64_t>(taken, 1);
  LS_RETURN_IF_ERROR(ForEach(
      stream, taken, LS_KERNEL_LAMBDA(int64_t i) { sample[i] = static_cast<float>(from[i * step]); }));
  return ForEach(
      stream, kTrialSums, LS_KERNEL_LAMBDA(int64_t lane) {
        uint64_t sum = 0;
        for (int64_t i = lane; i < count; i += kTrialSums) {
          sum += BitsOf(from[i]) * (2 * static_cast<uint64_t>(i) + 0x9e3779b97f4a7c15u);
        }
        sums[lane] = sum;
      });
}

}  // namespace

absl::Status LookAtTrial(StreamHandle stream, DType dtype, int64_t count, const std::byte* elements, float* sample,
                         uint64_t* sums) {
  return dtype == DType::kBF16 ? Look<Bf16>(stream, count, elements, sample, sums)
                               : Look<float>(stream, count, elements, sample, sums);
}

absl::Status FillWithTrialNumbers(StreamHandle stream, DType dtype, int64_t count, std::byte* elements) {
  if (dtype == DType::kF32) return Fill<float>(stream, count, elements);
  if (dtype == DType::kBF16) return Fill<Bf16>(stream, count, elements);
  return absl::OkStatus();
}

}  // namespace lockstep::device::cuda
