#include "worker/device/cuda/vendor_libraries.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/cublaslt_product.h"
#include "worker/device/cuda/product_choice.h"

namespace lockstep::device::cuda {
namespace {

// cuBLASLt's number as its parts: 130100 is 13.1.0.
std::string CublasLtName(uint64_t version) {
  return absl::StrCat("cuBLASLt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

class Libraries final : public VendorLibraries {
 public:
  explicit Libraries(CublasLtContext cublaslt)
      : cublaslt_(std::move(cublaslt)), name_(CublasLtName(cublaslt_.version)) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) const override {
    const std::string& wanted = request.implementation;
    if (!wanted.empty() && !absl::StartsWith(wanted, kCublasLtPrefix)) {
      return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", wanted,
                                                     "', which this version does not have. Start a new run."));
    }
    switch (request.node->op) {
      case OpType::kGemm:
      case OpType::kMatMul:
      case OpType::kBatchMatMul:
        return MakeCublasLtProduct(cublaslt_, request);
      default:
        return absl::UnimplementedError("NVIDIA's libraries are used for products and convolutions only");
    }
  }

 private:
  const CublasLtContext cublaslt_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenVendorLibraries(const VendorOptions& options) {
  LS_ASSIGN_OR_RETURN(CublasLtContext cublaslt, OpenCublasLt(options.gpu, options.tf32));
  return std::make_unique<Libraries>(std::move(cublaslt));
}

}  // namespace lockstep::device::cuda
