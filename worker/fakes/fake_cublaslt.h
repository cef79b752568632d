// Replaces the five functions of cuBLASLt that need a GPU by ones that compute in streams of host execution; the
// others, which only make descriptors, remain the library's. The test sets the algorithms that the heuristics offer.
//
// Threading: owned by the test's thread; work in streams reads only its own copies.
#ifndef LOCKSTEP_WORKER_FAKES_FAKE_CUBLASLT_H_
#define LOCKSTEP_WORKER_FAKES_FAKE_CUBLASLT_H_

#include <cublasLt.h>

#include <cstdint>
#include <vector>

namespace lockstep::device::cuda {

struct FakeOffer {
  uint64_t workspace_bytes = 0;
  uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
  int32_t splits = 1;
  cublasStatus_t state = CUBLAS_STATUS_SUCCESS;
  // The duration of a launch on host execution's clock.
  double milliseconds = 1;
  // The relative error of results; a restless algorithm has another error in each launch.
  float error = 0;
  bool restless = false;
};

struct FakeCublasLt {
  std::vector<FakeOffer> offers = {{}};
  // The results of cublasLtCreate, of the heuristics and of the algorithm check.
  cublasStatus_t create = CUBLAS_STATUS_SUCCESS;
  cublasStatus_t heuristics = CUBLAS_STATUS_SUCCESS;
  cublasStatus_t check = CUBLAS_STATUS_SUCCESS;
  // The preferences of the last call of the heuristics.
  uint64_t asked_workspace = 0;
  uint32_t asked_schemes = 0;
  uint32_t asked_alignment_a = 0;
  uint32_t asked_alignment_b = 0;
  // The number of products launched.
  int launches = 0;

  static FakeCublasLt& Get();
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_FAKES_FAKE_CUBLASLT_H_
