// Operands for trying kernels out: numbers whose bits differ, since a GPU that multiplies zeros takes less power and
// runs faster.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/tensor/dtype.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// Queues numbers between 1/2 and 1 into `count` elements of F32 or BF16. Other types stay as they are.
absl::Status FillWithTrialNumbers(StreamHandle stream, DType dtype, int64_t count, std::byte* elements);

// What trials look at of a tensor: how many of its elements, and in how many parts its bits are summed up.
inline constexpr int64_t kTrialSample = 4096;
inline constexpr int64_t kTrialSums = 65536;

// Elements at equal distances as floats, as many as there are up to kTrialSample, and sums of all elements' bits,
// weighted by their places, so that tensors which differ in any bit nearly always differ in a sum. REQUIRES: F32 or
// BF16.
absl::Status LookAtTrial(StreamHandle stream, DType dtype, int64_t count, const std::byte* elements, float* sample,
                         uint64_t* sums);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_
