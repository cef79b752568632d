// What graphs of cuDNN's frontend have in common: from values and nodes to plans that run. For files that build graphs;
// including this means reading the frontend.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CUDNN_ENGINES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CUDNN_ENGINES_H_

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
#include "worker/device/cuda/cudnn_graph.h"
#include "worker/device/cuda/engine_choice.h"

namespace lockstep::device::cuda {

namespace fe = ::cudnn_frontend;

using CudnnTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// A graph that is being made, with the device that engines are chosen for.
class CudnnGraph {
 public:
  // `type` is that of every value whose type is not said.
  CudnnGraph(const Cudnn& cudnn, ProductMath math, fe::DataType_t type);

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
  std::unique_ptr<CudnnPlan> PlanAt(int64_t index, const std::string& engine) const;

  const Cudnn& cudnn_;
  const ProductMath math_;
  const std::shared_ptr<fe::graph::Graph> graph_;
  EngineChoice here_;
};

std::vector<int64_t> RowMajorStrides(const Shape& shape);

// What `plan` answers, the frontend's exceptions as statuses.
template <typename F>
absl::StatusOr<CudnnPlans> WithoutExceptions(const F& plan) {
  try {
    return plan();
  } catch (const std::exception& exception) {
    return absl::InternalError(absl::StrCat("cuDNN's frontend: ", exception.what()));
  }
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CUDNN_ENGINES_H_
