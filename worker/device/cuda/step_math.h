// StepMath on a GPU.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_STEP_MATH_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_STEP_MATH_H_

#include <memory>

#include "worker/device/step_math.h"

namespace lockstep::device::cuda {

std::unique_ptr<StepMath> NewCudaStepMath();

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_STEP_MATH_H_
