// Asks the CUDA runtime whether the last kernel launch was accepted.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_STATUS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_STATUS_H_

#include "absl/status/status.h"

namespace lockstep::device::cuda {

// OK, or the error with which the calling thread's last launch could not be queued.
absl::Status LaunchStatus();

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_STATUS_H_
