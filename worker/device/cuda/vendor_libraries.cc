#include "worker/device/cuda/vendor_libraries.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/cublaslt_product.h"
#include "worker/device/cuda/product_choice.h"

// Without its frontend's headers cuDNN is left out of the build: bazel/cuda.bzl.
#ifdef LS_HAS_CUDNN
#include "worker/device/cuda/cudnn_convolution.h"
#include "worker/device/cuda/engine_choice.h"
#endif

namespace lockstep::device::cuda {
namespace {

// cuBLASLt's number as its parts: 130100 is 13.1.0.
std::string CublasLtName(uint64_t version) {
  return absl::StrCat("cuBLASLt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

#ifdef LS_HAS_CUDNN

class Convolutions {
 public:
  static absl::StatusOr<Convolutions> Open(const VendorOptions& options) {
    Convolutions convolutions;
    LS_ASSIGN_OR_RETURN(
        convolutions.cudnn_,
        Cudnn::Open({.gpu = options.gpu, .tf32 = options.tf32, .described_gpu = options.described_gpu}));
    return convolutions;
  }
  std::string name() const { return absl::StrCat(", ", cudnn_->name()); }
  bool Knows(const std::string& implementation) const { return absl::StartsWith(implementation, kCudnnPrefix); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) const {
    return MakeCudnnConvolution(*cudnn_, request);
  }

 private:
  std::unique_ptr<Cudnn> cudnn_;
};

#else

class Convolutions {
 public:
  static absl::StatusOr<Convolutions> Open(const VendorOptions&) { return Convolutions(); }
  std::string name() const { return ""; }
  bool Knows(const std::string&) const { return false; }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest&) const {
    return absl::UnimplementedError("this build has no cuDNN");
  }
};

#endif

class Libraries final : public VendorLibraries {
 public:
  Libraries(CublasLtContext cublaslt, Convolutions convolutions)
      : cublaslt_(std::move(cublaslt)),
        convolutions_(std::move(convolutions)),
        name_(CublasLtName(cublaslt_.version) + convolutions_.name()) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) const override {
    const std::string& wanted = request.implementation;
    switch (request.node->op) {
      case OpType::kGemm:
      case OpType::kMatMul:
      case OpType::kBatchMatMul:
        if (!wanted.empty() && !absl::StartsWith(wanted, kCublasLtPrefix)) break;
        return MakeCublasLtProduct(cublaslt_, request);
      case OpType::kConv:
      case OpType::kConvTranspose:
      case OpType::kConvGradInput:
      case OpType::kConvGradWeight:
        if (!wanted.empty() && !convolutions_.Knows(wanted)) break;
        return convolutions_.MakeKernel(request);
      default:
        if (!wanted.empty()) break;
        return absl::UnimplementedError("NVIDIA's libraries are used for products and convolutions only");
    }
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", wanted,
                                                   "', which this version does not have. Start a new run."));
  }

 private:
  const CublasLtContext cublaslt_;
  const Convolutions convolutions_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenNvidiaLibraries(const VendorOptions& options) {
  LS_ASSIGN_OR_RETURN(CublasLtContext cublaslt, OpenCublasLt(options.gpu, options.tf32));
  LS_ASSIGN_OR_RETURN(Convolutions convolutions, Convolutions::Open(options));
  return std::make_unique<Libraries>(std::move(cublaslt), std::move(convolutions));
}

}  // namespace lockstep::device::cuda
