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

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_TRIAL_NUMBERS_H_
