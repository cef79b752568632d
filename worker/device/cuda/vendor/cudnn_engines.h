// Builds graphs of cuDNN's frontend and chooses engines for them. Only files that build graphs include this header,
// since it includes the frontend, which is slow to compile.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ENGINES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ENGINES_H_

// Serialisation is not used, and its JSON library is slow to compile.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/shape.h"
#include "worker/device/cuda/vendor/cudnn_graph.h"
#include "worker/device/cuda/vendor/engine_choice.h"

namespace lockstep::device::cuda {

namespace fe = ::cudnn_frontend;

using CudnnTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// A graph under construction.
class CudnnGraph {
 public:
  // `type`: the default type of values. `kind`: the MATH of implementation names (engine_choice.h).
  CudnnGraph(const Cudnn& cudnn, std::string kind, ProductMath math, fe::DataType_t type);

  fe::graph::Graph& graph() { return *graph_; }

  template <typename Value>
  CudnnTensor Tensor(Value value, const Shape& dims, const std::vector<int64_t>& strides) {
    return graph_->tensor(
        fe::graph::Tensor_attributes().set_uid(static_cast<int64_t>(value)).set_dim(dims).set_stride(strides));
  }
  template <typename Value>
  void Output(const CudnnTensor& tensor, Value value, const Shape& dims, const std::vector<int64_t>& strides) {
    tensor->set_output(true).set_uid(static_cast<int64_t>(value)).set_dim(dims).set_stride(strides);
  }

  // Returns plans as PlanConvolution does. REQUIRES: the graph is complete.
  absl::StatusOr<CudnnPlans> Plan(const std::string& name, int most);

 private:
  absl::Status AskHeuristics();
  absl::StatusOr<CudnnPlans> ChooseNew(int most);
  absl::StatusOr<CudnnPlans> ChoosePlanned(const std::string& name);
  std::shared_ptr<CudnnPlan> PlanAt(int64_t index, const std::string& engine) const;

  const Cudnn& cudnn_;
  const ProductMath math_;
  const std::shared_ptr<fe::graph::Graph> graph_;
  EngineChoice here_;
};

std::vector<int64_t> RowMajorStrides(const Shape& shape);

// Returns plan(), with the frontend's exceptions turned into statuses. If a single plan is wanted and a kernel already
// holds one for the same problem and name, returns that instead.
template <typename F>
absl::StatusOr<CudnnPlans> SharedOr(const Cudnn& cudnn, const std::string& problem, const std::string& name, int most,
                                    const F& plan) {
  const auto key = [&](const std::string& of) { return absl::StrCat(problem, " by ", of); };
  const bool one = most == 1 || !name.empty();
  if (const auto held = cudnn.plans().find(key(name)); one && held != cudnn.plans().end()) {
    if (std::shared_ptr<CudnnPlan> shared = held->second.lock(); shared != nullptr) return CudnnPlans{shared};
  }
  try {
    absl::StatusOr<CudnnPlans> plans = plan();
    // Several plans are for trials and are not shared.
    if (one && plans.ok()) cudnn.plans()[key(name)] = cudnn.plans()[key(plans->front()->name())] = plans->front();
    return plans;
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("cuDNN's frontend: ", exception.what()));
  }
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ENGINES_H_
