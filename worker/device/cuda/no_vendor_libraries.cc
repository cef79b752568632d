// Host execution has none of NVIDIA's libraries.
#include "absl/strings/str_cat.h"
#include "worker/device/cuda/vendor_libraries.h"
#include "worker/device/implementation_list.h"

namespace lockstep::device::cuda {
namespace {

class NoLibraries final : public VendorLibraries {
 public:
  const std::string& name() const override { return name_; }
  absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeKernels(const KernelRequest& request, int) const override {
    if (request.implementation.empty()) return NotItsOp();
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", request.implementation,
                                                   "', host execution has own kernels alone. Use a machine like those "
                                                   "that made the plan, or start a new run."));
  }

 private:
  const std::string name_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions&) {
  return std::make_unique<NoLibraries>();
}

}  // namespace lockstep::device::cuda
