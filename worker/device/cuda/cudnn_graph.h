// cuDNN through its frontend: a convolution becomes a graph, an engine is chosen for it, and the plan runs. The
// frontend is seen by cudnn_graph.cc alone, since reading it takes a compiler longer than all else here; its exceptions
// and codes become statuses there.
//
// Without a name the engine is the first of the heuristics' order that is deterministic, rounds no more than the
// factors' type says, has not more scratch than the limit, and builds. With one it is exactly that engine.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CUDNN_GRAPH_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CUDNN_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/device/cuda/convolution_problem.h"
#include "worker/device/cuda/runtime.h"

namespace lockstep::device::cuda {

struct CudnnOptions {
  // The kind of GPU and its multiprocessors, as names have it: "sm_90x132".
  std::string gpu;
  bool tf32 = false;
  // The GPU that engines are chosen for, as cuDNN describes one in JSON; empty: the calling thread's.
  std::string described_gpu;
  // Of what one convolution may ask for.
  int64_t workspace_limit = int64_t{256} << 20;
};

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

 private:
  const CudnnOptions options_;
  const std::unique_ptr<State> state_;
};

// Addresses of one convolution; `bias` may be null where the problem has none.
struct ConvolutionAddresses {
  std::byte* x = nullptr;
  std::byte* w = nullptr;
  std::byte* y = nullptr;
  std::byte* bias = nullptr;
};

class CudnnPlan {
 public:
  virtual ~CudnnPlan() = default;
  // As a kernel plan stores it.
  virtual const std::string& name() const = 0;
  virtual size_t workspace_bytes() const = 0;
  virtual absl::Status Execute(const ConvolutionAddresses& addresses, std::byte* workspace, StreamHandle stream) = 0;
};

// REQUIRES: `cudnn` outlives the plan. Unimplemented where no engine serves, InvalidArgument where `name` does not.
absl::StatusOr<std::unique_ptr<CudnnPlan>> PlanConvolution(const Cudnn& cudnn, const ConvolutionProblem& problem,
                                                           const std::string& name);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CUDNN_GRAPH_H_
