// A device beside this has libraries that only plan.
#include "worker/device/cuda/vendor/planned_libraries.h"

namespace lockstep::device::cuda {

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions& options) {
  return NewPlannedLibraries(options.tf32);
}

}  // namespace lockstep::device::cuda
