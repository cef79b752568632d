// Makes devices by kind: the only code that knows all of them.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICES_H_
#define LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/device/choice/device_kind.h"
#include "worker/device/device.h"

namespace lockstep::device {

// Parses "reference", "cpu" or "cuda". InvalidArgument lists these.
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name);

// Makes a device, owned by the calling thread. Errors are those of the device's own factory and, for kCuda, of
// LoadCudaLibrary.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(DeviceKind kind, const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICES_H_
