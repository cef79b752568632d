#include "worker/device/cuda/vendor_libraries.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/vendor/cublaslt_product.h"
#include "worker/device/cuda/vendor/product_choice.h"
#include "worker/device/implementation_list.h"

// Without its frontend's headers cuDNN is left out of the build: bazel/cuda.bzl.
#ifdef LS_HAS_CUDNN
#include "worker/device/cuda/vendor/cudnn_attention.h"
#include "worker/device/cuda/vendor/cudnn_convolution.h"
#include "worker/device/cuda/vendor/engine_choice.h"
#endif

namespace lockstep::device::cuda {
namespace {

// cuBLASLt's number as its parts: 130100 is 13.1.0.
std::string CublasLtName(uint64_t version) {
  return absl::StrCat("cuBLASLt ", version / 10000, ".", version / 100 % 100, ".", version % 100);
}

using Kernels = std::vector<std::unique_ptr<Kernel>>;

#ifdef LS_HAS_CUDNN

class CudnnKernels {
 public:
  static absl::StatusOr<CudnnKernels> Open(const VendorOptions& options) {
    CudnnKernels kernels;
    LS_ASSIGN_OR_RETURN(
        kernels.cudnn_,
        Cudnn::Open({.gpu = options.gpu, .tf32 = options.tf32, .described_gpu = options.described_gpu}));
    return kernels;
  }
  std::string name() const { return absl::StrCat(", ", cudnn_->name()); }
  bool Knows(const std::string& implementation) const { return absl::StartsWith(implementation, kCudnnPrefix); }
  absl::StatusOr<Kernels> Make(const KernelRequest& request, int most) const {
    const OpType op = request.node->op;
    if (op == OpType::kAttention || op == OpType::kAttentionGrad) return MakeCudnnAttention(*cudnn_, request, most);
    return MakeCudnnConvolution(*cudnn_, request, most);
  }

 private:
  std::unique_ptr<Cudnn> cudnn_;
};

#else

class CudnnKernels {
 public:
  static absl::StatusOr<CudnnKernels> Open(const VendorOptions&) { return CudnnKernels(); }
  std::string name() const { return ""; }
  bool Knows(const std::string&) const { return false; }
  absl::StatusOr<Kernels> Make(const KernelRequest&, int) const {
    return MarkRefusal(absl::UnimplementedError("this build has no cuDNN"));
  }
};

#endif

class Libraries final : public VendorLibraries {
 public:
  Libraries(CublasLtContext cublaslt, CudnnKernels cudnn)
      : cublaslt_(std::move(cublaslt)),
        cudnn_(std::move(cudnn)),
        name_(CublasLtName(cublaslt_.version) + cudnn_.name()) {}

  const std::string& name() const override { return name_; }

  absl::StatusOr<Kernels> MakeKernels(const KernelRequest& request, int most) const override {
    const std::string& wanted = request.implementation;
    switch (request.node->op) {
      case OpType::kGemm:
      case OpType::kMatMul:
      case OpType::kBatchMatMul:
        if (!wanted.empty() && !absl::StartsWith(wanted, kCublasLtPrefix)) break;
        return MakeCublasLtProduct(cublaslt_, request, most);
      case OpType::kConv:
      case OpType::kConvTranspose:
      case OpType::kConvGradInput:
      case OpType::kConvGradWeight:
      case OpType::kAttention:
      case OpType::kAttentionGrad:
        if (!wanted.empty() && !cudnn_.Knows(wanted)) break;
        return cudnn_.Make(request, most);
      default:
        if (!wanted.empty()) break;
        return NotItsOp();
    }
    return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '", wanted,
                                                   "', which this version does not have. Start a new run."));
  }

 private:
  const CublasLtContext cublaslt_;
  const CudnnKernels cudnn_;
  const std::string name_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VendorLibraries>> OpenNvidiaLibraries(const VendorOptions& options) {
  LS_ASSIGN_OR_RETURN(CublasLtContext cublaslt, OpenCublasLt(options.gpu, options.tf32));
  LS_ASSIGN_OR_RETURN(CudnnKernels cudnn, CudnnKernels::Open(options));
  return std::make_unique<Libraries>(std::move(cublaslt), std::move(cudnn));
}

}  // namespace lockstep::device::cuda
