// The CPU device: oneDNN for products, convolutions and their gradients, own loops for everything that oneDNN has not
// or serves by slow reference code, and the reference kernels for what neither serves (F64, empty shapes).
//
// Choices are made from fixed tables, never by timing, and may depend on the instruction set, the thread count and what
// oneDNN reads of the caches. Denormals are flushed to zero in every thread that computes.
//
// Threading: as device.h; the thread that makes the device is its owner.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_CPU_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_CPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// Sets the calling thread's number of OpenMP threads and its floating-point mode. InvalidArgument when `threads` < 1,
// when this CPU lacks the instruction set, or when kernels of a higher one were already made in this process.
absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_CPU_DEVICE_H_
