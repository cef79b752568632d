// The reference device: one plain loop per op, on one thread, for F32, F64 and, where ONNX defines the op for them,
// integers and bools. It is the oracle for every other device, folds constants, and checks gradients against central
// differences in F64. It serves every node, is the last candidate of the CPU device, and is not meant to be fast.
//
// Threading: the device is owned by the thread that makes it.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_REFERENCE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_REFERENCE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// InvalidArgument for an instruction set other than "portable" or empty. Ignores options.threads.
absl::StatusOr<std::unique_ptr<Device>> MakeReferenceDevice(const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_REFERENCE_DEVICE_H_
