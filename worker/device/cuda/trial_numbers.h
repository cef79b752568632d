// Operands for kernel trials, and fingerprints of their results. The operands have varied bits, since a GPU that
// multiplies zeros draws less power and runs faster.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/tensor/dtype.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// Queues filling `count` elements of F32 or BF16 with numbers between 1/2 and 1. Other types are left as they are.
absl::Status FillWithTrialNumbers(StreamHandle stream, DType dtype, int64_t count, std::byte* elements);

// The number of sampled elements and of partial sums in a fingerprint.
inline constexpr int64_t kTrialSample = 4096;
inline constexpr int64_t kTrialSums = 65536;

// Queues the fingerprint of a tensor: up to kTrialSample equidistant elements as floats, and kTrialSums sums of all
// elements' bits, weighted by position, so that tensors that differ in any bit almost always differ in a sum. REQUIRES:
// F32 or BF16.
absl::Status LookAtTrial(StreamHandle stream, DType dtype, int64_t count, const std::byte* elements, float* sample,
                         uint64_t* sums);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_
