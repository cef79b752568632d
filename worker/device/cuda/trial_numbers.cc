#include "worker/device/cuda/trial_numbers.h"

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

}  // namespace

absl::Status FillWithTrialNumbers(StreamHandle stream, DType dtype, int64_t count, std::byte* elements) {
  if (dtype == DType::kF32) return Fill<float>(stream, count, elements);
  if (dtype == DType::kBF16) return Fill<Bf16>(stream, count, elements);
  return absl::OkStatus();
}

}  // namespace lockstep::device::cuda
