// cuDNN through its frontend: a convolution or an attention becomes a graph, engines are chosen for it, and a plan
// runs. The frontend is seen by cudnn_engines.h and what includes it alone, since reading it takes a compiler longer
// than all else here; its exceptions and codes become statuses there.
//
// Without a name the plans are the first of the heuristics' order that are deterministic, round no more than the
// factors' type says, have not more scratch than the limit, and build. With one it is exactly that engine.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_GRAPH_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/cuda/vendor/attention_problem.h"
#include "worker/device/cuda/vendor/convolution_problem.h"

namespace lockstep::device::cuda {

struct CudnnOptions {
  // The kind of GPU and its multiprocessors, as names have it: "sm_90x132".
  std::string gpu;
  bool tf32 = false;
  // The GPU that engines are chosen for, as cuDNN describes one in JSON; empty: the calling thread's.
  std::string described_gpu;
  // Of what one node may ask for.
  int64_t workspace_limit = kCudnnWorkspaceLimit;
};

class CudnnPlan;

// A handle on the calling thread's GPU.
class Cudnn {
 public:
  struct State;

  // FailedPrecondition with cuDNN's reason.
  static absl::StatusOr<std::unique_ptr<Cudnn>> Open(CudnnOptions options);
  Cudnn(CudnnOptions options, std::unique_ptr<State> state);
  ~Cudnn();

  const CudnnOptions& options() const { return options_; }
  State& state() const { return *state_; }
  // "cuDNN 9.19.0".
  std::string name() const;
  // The plans that kernels hold now, by problem and name: cuDNN compiles some of them, and layers are alike.
  std::map<std::string, std::weak_ptr<CudnnPlan>>& plans() const { return plans_; }

 private:
  const CudnnOptions options_;
  const std::unique_ptr<State> state_;
  mutable std::map<std::string, std::weak_ptr<CudnnPlan>> plans_;
};

// The values of the graphs that are built here.
enum class ConvolutionValue : int64_t { kX = 1, kW, kY, kBias };
enum class AttentionValue : int64_t { kQ = 1, kK, kV, kY, kLargest, kSum, kLogSum, kGradY, kGradQ, kGradK, kGradV };

// Where a value lies.
struct CudnnAddress {
  template <typename Value>
  CudnnAddress(Value which, std::byte* where) : value(static_cast<int64_t>(which)), address(where) {}

  int64_t value;
  std::byte* address;
};

// An engine for a graph. Keeps no addresses, so that kernels may share one.
class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  // As a kernel plan stores it.
  virtual const std::string& name() const = 0;
  virtual size_t workspace_bytes() const = 0;
  // `addresses` are those of all the graph's values.
  virtual absl::Status Execute(absl::Span<const CudnnAddress> addresses, std::byte* workspace, StreamHandle stream) = 0;
};

// At least one and at most `most` plans, in the order in which they are preferred; one where there is a name.
// REQUIRES: `cudnn` outlives them. Unimplemented where no engine serves, InvalidArgument where `name` does not.
using CudnnPlans = std::vector<std::shared_ptr<CudnnPlan>>;
absl::StatusOr<CudnnPlans> PlanConvolution(const Cudnn& cudnn, const ConvolutionProblem& problem,
                                           const std::string& name, int most);
absl::StatusOr<CudnnPlans> PlanAttention(const Cudnn& cudnn, const AttentionProblem& problem, const std::string& name,
                                         int most);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_GRAPH_H_
