// The five of cuBLASLt's functions that need a GPU, replaced by ones that compute in host execution's streams; all
// others, which describe, stay the library's own. The test sets what the heuristics offer.
//
// Threading: owned by the test's thread; what a stream runs reads only what it was given.
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
  // What a launch takes by host execution's clock.
  double milliseconds = 1;
  // Results are wrong by this part of themselves; and, if it is restless, by another part in each launch.
  float error = 0;
  bool restless = false;
};

struct FakeCublasLt {
  std::vector<FakeOffer> offers = {{}};
  // What cublasLtCreate, the heuristics and the check answer.
  cublasStatus_t create = CUBLAS_STATUS_SUCCESS;
  cublasStatus_t heuristics = CUBLAS_STATUS_SUCCESS;
  cublasStatus_t check = CUBLAS_STATUS_SUCCESS;
  // Of the last question to the heuristics.
  uint64_t asked_workspace = 0;
  uint32_t asked_schemes = 0;
  uint32_t asked_alignment_a = 0;
  uint32_t asked_alignment_b = 0;
  // How often a product was launched.
  int launches = 0;

  static FakeCublasLt& Get();
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_FAKES_FAKE_CUBLASLT_H_
