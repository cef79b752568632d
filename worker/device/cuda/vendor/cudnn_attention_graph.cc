// Attention or its gradient as a graph of cuDNN's frontend.
#include <string>

#include "worker/device/cuda/vendor/cudnn_engines.h"

namespace lockstep::device::cuda {
namespace {

class AttentionGraph {
 public:
  AttentionGraph(const Cudnn& cudnn, const AttentionProblem& problem)
      : problem_(problem),
        graph_(cudnn, ProductMathName(ProductMath::kBf16), ProductMath::kBf16, fe::DataType_t::BFLOAT16) {}

  CudnnGraph& Describe() {
    if (problem_.backward) {
      Backward();
    } else {
      Forward();
    }
    return graph_;
  }

 private:
  CudnnTensor Tensor(AttentionValue value, const AttentionOperand& operand) {
    return graph_.Tensor(value, operand.dims, operand.strides);
  }
  CudnnTensor Rows(AttentionValue value) {
    CudnnTensor tensor = Tensor(value, problem_.rows);
    tensor->set_data_type(fe::DataType_t::FLOAT);
    return tensor;
  }
  void Output(const CudnnTensor& tensor, AttentionValue value, const AttentionOperand& operand) {
    graph_.Output(tensor, value, operand.dims, operand.strides);
  }

  void Forward() {
    auto attributes = fe::graph::SDPA_attributes().set_attn_scale(problem_.scale).set_generate_stats(false);
    if (problem_.causal) attributes.set_diagonal_band_right_bound(0);
    if (problem_.statistics) {
      attributes.set_logit_max(Rows(AttentionValue::kLargest)).set_score_sum_exp(Rows(AttentionValue::kSum));
    }
    const CudnnTensor y =
        graph_.graph().sdpa(Tensor(AttentionValue::kQ, problem_.q), Tensor(AttentionValue::kK, problem_.k),
                            Tensor(AttentionValue::kV, problem_.v), attributes)[0];
    Output(y, AttentionValue::kY, problem_.y);
  }

  void Backward() {
    auto attributes = fe::graph::SDPA_backward_attributes()
                          .set_attn_scale(problem_.scale)
                          // Notes of engines do not tell: the others add dQ up in any order.
                          .set_deterministic_algorithm(true);
    if (problem_.causal) attributes.set_diagonal_band_right_bound(0);
    const auto [dq, dk, dv] = graph_.graph().sdpa_backward(
        Tensor(AttentionValue::kQ, problem_.q), Tensor(AttentionValue::kK, problem_.k),
        Tensor(AttentionValue::kV, problem_.v), Tensor(AttentionValue::kY, problem_.y),
        Tensor(AttentionValue::kGradY, problem_.y), Rows(AttentionValue::kLogSum), attributes);
    Output(dq, AttentionValue::kGradQ, problem_.q);
    Output(dk, AttentionValue::kGradK, problem_.k);
    Output(dv, AttentionValue::kGradV, problem_.v);
  }

  const AttentionProblem& problem_;
  CudnnGraph graph_;
};

}  // namespace

absl::StatusOr<CudnnPlans> PlanAttention(const Cudnn& cudnn, const AttentionProblem& problem, const std::string& name,
                                         int most) {
  return SharedOr(cudnn, KeyOf(problem), name, most,
                  [&] { return AttentionGraph(cudnn, problem).Describe().Plan(name, most); });
}

}  // namespace lockstep::device::cuda
