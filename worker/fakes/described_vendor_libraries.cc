// For tests: NVIDIA's libraries for a GPU that is described to them.
#include "worker/device/cuda/vendor_libraries.h"
#include "worker/fakes/fake_cudnn.h"

namespace lockstep::device::cuda {

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions& options) {
  VendorOptions described = options;
  described.described_gpu = kDescribedGpu;
  return OpenNvidiaLibraries(described);
}

}  // namespace lockstep::device::cuda
