#include "worker/device/choice/devices.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/choice/cuda_loader.h"
#include "worker/device/host/cpu_device.h"
#include "worker/device/host/reference_device.h"

namespace lockstep::device {

absl::StatusOr<DeviceKind> ParseDeviceKind(absl::string_view name) {
  if (name == "reference") return DeviceKind::kReference;
  if (name == "cpu") return DeviceKind::kCpu;
  if (name == "cuda") return DeviceKind::kCuda;
  return absl::InvalidArgumentError(
      absl::StrCat("unknown device '", name, "'; set `resources.device` to 'cpu', 'cuda' or 'reference'"));
}

absl::StatusOr<std::unique_ptr<Device>> MakeDevice(DeviceKind kind, const DeviceOptions& options) {
  switch (kind) {
    case DeviceKind::kReference:
      return MakeReferenceDevice(options);
    case DeviceKind::kCpu:
      return MakeCpuDevice(options);
    case DeviceKind::kCuda: {
      LS_ASSIGN_OR_RETURN(const CudaLibrary* const library, LoadCudaLibrary());
      return library->make_device(options);
    }
  }
  return absl::InternalError("a device kind that MakeDevice does not know");
}

}  // namespace lockstep::device
