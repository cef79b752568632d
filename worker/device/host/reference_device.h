// The reference device: one plain loop per op of the closed set, for F32 and F64 and, where ONNX has the op on them,
// integers and bools, on one thread. The oracle for every other device, what constants are folded with, and what
// gradients are checked against central differences with, in F64. It serves every node; it is the last candidate and
// not meant to be fast.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_REFERENCE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_REFERENCE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// InvalidArgument for an instruction set other than "portable" (or empty). Threads are not used.
absl::StatusOr<std::unique_ptr<Device>> MakeReferenceDevice(const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_REFERENCE_DEVICE_H_
