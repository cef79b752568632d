// cuDNN by its frontend: a convolution or an attention becomes a graph, an engine is chosen for it, and a plan executes
// it. Only cudnn_engines.h and its users include the frontend, since it is slow to compile; they turn its exceptions
// and codes into statuses.
//
// Without an implementation name the plans are the first ones, in the order of cuDNN's heuristics, that are
// deterministic, round factors no more than the math mode allows, keep to the scratch limit, and build. With a name it
// is exactly that engine.
//
// Threading: owned by the device's owner thread.
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
  // The kind of GPU and its number of multiprocessors, as in implementation names: "sm_90x132".
  std::string gpu;
  bool tf32 = false;
  // The GPU to choose engines for, in cuDNN's JSON description; empty: the calling thread's.
  std::string described_gpu;
  // The most scratch for one node, in bytes.
  int64_t workspace_limit = kCudnnWorkspaceLimit;
};

class CudnnPlan;

// An open cuDNN on the calling thread's GPU.
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
  // The plans that kernels currently hold, by problem and name, for sharing: cuDNN compiles some of them at run time,
  // and equal layers need equal plans.
  std::map<std::string, std::weak_ptr<CudnnPlan>>& plans() const { return plans_; }

 private:
  const CudnnOptions options_;
  const std::unique_ptr<State> state_;
  mutable std::map<std::string, std::weak_ptr<CudnnPlan>> plans_;
};

// The ids of values in graphs.
enum class ConvolutionValue : int64_t { kX = 1, kW, kY, kBias };
enum class AttentionValue : int64_t { kQ = 1, kK, kV, kY, kLargest, kSum, kLogSum, kGradY, kGradQ, kGradK, kGradV };

// The address of a value.
struct CudnnAddress {
  template <typename Value>
  CudnnAddress(Value which, std::byte* where) : value(static_cast<int64_t>(which)), address(where) {}

  int64_t value;
  std::byte* address;
};

// An engine for a graph. Holds no addresses, so that kernels may share it.
class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  // The implementation name that a kernel plan stores.
  virtual const std::string& name() const = 0;
  virtual size_t workspace_bytes() const = 0;
  // `addresses`: one for each value of the graph.
  virtual absl::Status Execute(absl::Span<const CudnnAddress> addresses, std::byte* workspace, StreamHandle stream) = 0;
};

// The Plan functions return between one and `most` plans in order of preference; exactly one if `name` is not empty.
// Unimplemented when no engine serves, InvalidArgument when the one called `name` does not. REQUIRES: `cudnn` outlives
// the plans.
using CudnnPlans = std::vector<std::shared_ptr<CudnnPlan>>;
absl::StatusOr<CudnnPlans> PlanConvolution(const Cudnn& cudnn, const ConvolutionProblem& problem,
                                           const std::string& name, int most);
absl::StatusOr<CudnnPlans> PlanAttention(const Cudnn& cudnn, const AttentionProblem& problem, const std::string& name,
                                         int most);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_GRAPH_H_
