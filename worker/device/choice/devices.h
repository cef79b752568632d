// The choice of a device by name: the one place that knows them all.
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

// "reference", "cpu" or "cuda". InvalidArgument lists what there is.
absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name);

// Makes a device whose owner is the calling thread. Errors are those of the devices' own makers; of kCuda also those of
// LoadCudaLibrary.
absl::StatusOr<std::unique_ptr<Device>> MakeDevice(DeviceKind kind, const DeviceOptions& options);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICES_H_
