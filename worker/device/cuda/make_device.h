// The CUDA device: own kernels for every op, and before them those of cuBLASLt and cuDNN where the build has these
// libraries, by a fixed rule or, where a request allows trials, the fastest (kernel_trials.h). Compiled for the host it
// is the device of host execution, with own kernels alone.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_MAKE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_MAKE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// On GPU `options.ordinal`, whose context becomes the calling thread's. InvalidArgument for an instruction set that is
// not the GPU's ("sm_90") and for a number that no GPU has.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_MAKE_DEVICE_H_
