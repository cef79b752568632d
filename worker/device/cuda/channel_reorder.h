// Converts a value between row-major and channels-last layout.
//
// Threading: kernels are owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHANNEL_REORDER_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHANNEL_REORDER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

// Implements Device::MakeReorder. Unimplemented for layouts that this device does not have.
absl::StatusOr<std::unique_ptr<Kernel>> MakeChannelReorder(const ReorderRequest& request);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHANNEL_REORDER_H_
