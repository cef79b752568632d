// Buffers, streams and events of a GPU over runtime.h, and the handle behind a stream for whoever launches into it.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CUDA_STREAM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CUDA_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/cuda/runtime.h"
#include "worker/device/device.h"

namespace lockstep::device::cuda {

// Zeroed device memory. Blocks until it is zeroed. ResourceExhausted as AllocateDevice.
absl::StatusOr<std::unique_ptr<Buffer>> NewDeviceBuffer(size_t bytes);
// Zeroed host memory that the GPU copies from and to by itself.
absl::StatusOr<std::unique_ptr<Buffer>> NewPinnedBuffer(size_t bytes);
absl::StatusOr<std::unique_ptr<Stream>> NewCudaStream();
absl::StatusOr<std::unique_ptr<Event>> NewCudaEvent();

// REQUIRES: the stream or event came from the functions above.
StreamHandle HandleOf(Stream& stream);
EventHandle HandleOf(Event& event);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CUDA_STREAM_H_
