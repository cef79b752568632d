// Whether the last kernel launch was accepted; launch.h asks the runtime.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_STATUS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_STATUS_H_

#include "absl/status/status.h"

namespace lockstep::device::cuda {

// The failure of the calling thread's last launch, if it could not be queued.
absl::Status LaunchStatus();

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_LAUNCH_STATUS_H_
