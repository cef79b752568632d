// Kernels for Gemm, MatMul and BatchMatMul by cuBLASLt. If the request names no implementation, cuBLASLt's heuristics
// offer several algorithms, which a rule filters (product_choice.h); if it names one, exactly that algorithm is checked
// and used.
//
// Values are row-major here, while cuBLASLt is column-major: it computes the transposed result with swapped factors,
// whose bytes in memory are the same.
//
// Threading: kernels are owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUBLASLT_PRODUCT_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUBLASLT_PRODUCT_H_

#include <cublasLt.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/cuda/vendor/product_problem.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

// A deleter for unique_ptr that calls cuBLASLt's destroy function.
template <auto kDestroy>
struct CublasLtDestroy {
  template <typename T>
  void operator()(T* owned) const {
    kDestroy(owned);
  }
};

using CublasLtHandle = std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, CublasLtDestroy<&cublasLtDestroy>>;
using CublasLtOperation =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, CublasLtDestroy<&cublasLtMatmulDescDestroy>>;
using CublasLtLayout =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, CublasLtDestroy<&cublasLtMatrixLayoutDestroy>>;

struct CublasLtContext {
  CublasLtHandle handle;
  uint64_t version = 0;
  // The kind of GPU and its number of multiprocessors, as in implementation names: "sm_90x132".
  std::string gpu;
  bool tf32 = false;
  // The most scratch for one product, in bytes.
  uint64_t workspace_limit = uint64_t{32} << 20;
};

// Opens cuBLASLt on the calling thread's GPU. FailedPrecondition with cuBLASLt's reason.
absl::StatusOr<CublasLtContext> OpenCublasLt(std::string gpu, bool tf32);

// A problem as cuBLASLt's descriptors: cuBLASLt's A is `b` here, its B is `a`.
struct CublasLtProblem {
  CublasLtOperation operation;
  CublasLtLayout a;
  CublasLtLayout b;
  CublasLtLayout y;
};

// Needs no GPU. The address of a bias row is a placeholder until Bind.
absl::StatusOr<CublasLtProblem> DescribeForCublasLt(const ProductProblem& problem);

// Returns between one and `most` kernels in order of preference; exactly one if the request names it. An error says why
// cuBLASLt cannot serve the node. REQUIRES: `context` outlives the kernels.
absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCublasLtProduct(const CublasLtContext& context,
                                                                         const KernelRequest& request, int most = 1);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUBLASLT_PRODUCT_H_
