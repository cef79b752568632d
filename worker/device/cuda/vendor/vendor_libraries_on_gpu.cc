#include "worker/device/cuda/vendor_libraries.h"

namespace lockstep::device::cuda {

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions& options) {
  return OpenNvidiaLibraries(options);
}

}  // namespace lockstep::device::cuda
