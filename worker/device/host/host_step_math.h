// StepMath for devices that compute in host memory on the calling thread: work is done when the call returns.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_HOST_STEP_MATH_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_HOST_STEP_MATH_H_

#include <memory>

#include "worker/device/step_math.h"

namespace lockstep::device {

std::unique_ptr<StepMath> MakeHostStepMath();

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_HOST_STEP_MATH_H_
