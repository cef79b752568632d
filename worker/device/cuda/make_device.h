// The CUDA device. It prefers kernels of cuBLASLt and cuDNN, if the build has them, to the project's own, which exist
// for every op; it chooses by a fixed rule or, where a request allows trials, the fastest (kernel_trials.h). Compiled
// for the host it is the device of host execution, with own kernels only.
//
// Threading: the device is owned by the thread that makes it.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_MAKE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_MAKE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// Makes a device on GPU `options.ordinal`, whose context becomes current in the calling thread. InvalidArgument for an
// instruction set other than the GPU's ("sm_90") and for an ordinal without a GPU.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_MAKE_DEVICE_H_
