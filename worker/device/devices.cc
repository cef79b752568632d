#include "worker/device/devices.h"

#include "absl/strings/str_cat.h"
#include "worker/device/cpu/make_device.h"
#include "worker/device/reference/make_device.h"

namespace lockstep::device {

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name) {
  if (name == "reference") return DeviceKind::kReference;
  if (name == "cpu") return DeviceKind::kCpu;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown device '", name, "'; set `resources.device` to 'cpu' or 'reference'"));
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(DeviceKind kind, const DeviceOptions& options) {
  switch (kind) {
    case DeviceKind::kReference:
      return MakeReferenceDevice(options);
    case DeviceKind::kCpu:
      return MakeCpuDevice(options);
  }
  return absl::InternalError("a device kind that MakeDevice does not know");
}

}  // namespace lockstep::device
