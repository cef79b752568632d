// Gemm, MatMul and BatchMatMul by cuBLASLt. Without a name in the request the heuristics are asked for several
// algorithms, of which a rule says those that may serve (product_choice.h); with one, exactly the algorithm that it
// spells is checked and taken.
//
// Everything is row-major here and column-major there: cuBLASLt computes the transposed result, with the factors
// swapped, of which the bytes are the same.
//
// Threading: as kernel.h.
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

// Calls cuBLASLt's own function to destroy what a unique_ptr owns.
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
  // The kind of GPU and its multiprocessors, as names have it: "sm_90x132".
  std::string gpu;
  bool tf32 = false;
  // Of what one product may ask for.
  uint64_t workspace_limit = uint64_t{32} << 20;
};

// On the calling thread's GPU. FailedPrecondition with cuBLASLt's reason.
absl::StatusOr<CublasLtContext> OpenCublasLt(std::string gpu, bool tf32);

// A problem in cuBLASLt's words: its A is `b` here and its B is `a`.
struct CublasLtProblem {
  CublasLtOperation operation;
  CublasLtLayout a;
  CublasLtLayout b;
  CublasLtLayout y;
};

// Needs no GPU. Where a row is added, its address is one that nobody may read, until it is bound.
absl::StatusOr<CublasLtProblem> DescribeForCublasLt(const ProductProblem& problem);

// At least one and at most `most` kernels, in the order in which they are preferred; one where the request has a name.
// REQUIRES: `context` outlives them. An error says why cuBLASLt cannot serve the node.
absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCublasLtProduct(const CublasLtContext& context,
                                                                         const KernelRequest& request, int most = 1);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUBLASLT_PRODUCT_H_
