// What graphs of cuDNN's frontend have in common: from values and nodes to plans that run. For files that build graphs;
// including this means reading the frontend.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ENGINES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ENGINES_H_

// Serialising is not used, and its JSON library is slow to compile.
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

// A graph that is being made, with the device that engines are chosen for.
class CudnnGraph {
 public:
  // `type` is that of every value whose type is not said. `kind`: the MATH of names.
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

  // As PlanConvolution. REQUIRES: all nodes are there.
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

// What `plan` answers, the frontend's exceptions as statuses; or the plan that a kernel holds for the same problem and
// the same name (or without one), where one plan is wanted.
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
    // Several keep each other's kernels, which is for trials alone.
    if (one && plans.ok()) cudnn.plans()[key(name)] = cudnn.plans()[key(plans->front()->name())] = plans->front();
    return plans;
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("cuDNN's frontend: ", exception.what()));
  }
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ENGINES_H_
