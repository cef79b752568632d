// The CPU device: oneDNN for products, convolutions and their gradients; own loops for ops that oneDNN lacks or runs by
// slow reference code; reference kernels for the rest (F64, empty shapes).
//
// Kernels are chosen from fixed tables, never by timing. The choice may depend on the instruction set, the number of
// threads and the cache sizes that oneDNN detects. Denormals are flushed to zero in every computing thread.
//
// Threading: the device is owned by the thread that makes it.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_CPU_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_CPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// Also sets the calling thread's number of OpenMP threads and its floating-point mode. InvalidArgument when
// options.threads < 1, when the CPU lacks the instruction set, or when kernels of a higher one were already made in
// this process.
absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_CPU_DEVICE_H_
