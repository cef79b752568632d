// A convolution or one of its gradients as a graph of cuDNN's frontend.
#include <algorithm>
#include <string>
#include <vector>

#include "worker/device/cuda/vendor/cudnn_engines.h"
#include "worker/kernels/cuda/channels_last.h"

namespace lockstep::device::cuda {
namespace {

class ConvolutionGraph {
 public:
  ConvolutionGraph(const Cudnn& cudnn, const ConvolutionProblem& problem)
      : problem_(problem),
        graph_(cudnn, absl::StrCat(ProductMathName(problem.math), problem.channels_last ? kChannelsLastSuffix : ""),
               problem.math, problem.dtype == DType::kBF16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::FLOAT) {}

  CudnnGraph& Describe() {
    CudnnTensor result = Convolve();
    if (problem_.bias) {
      Shape channels(problem_.y.size(), 1);
      channels[1] = problem_.y[1];
      result = Pointwise(result, Tensor(ConvolutionValue::kBias, channels), fe::PointwiseMode_t::ADD);
    }
    if (problem_.relu) result = Pointwise(result, nullptr, fe::PointwiseMode_t::RELU_FWD);
    const bool is_x = problem_.pass == ConvolutionPass::kX, is_w = problem_.pass == ConvolutionPass::kW;
    const Shape& shape = is_x ? problem_.x : is_w ? problem_.w : problem_.y;
    graph_.Output(result,
                  is_x   ? ConvolutionValue::kX
                  : is_w ? ConvolutionValue::kW
                         : ConvolutionValue::kY,
                  shape, Strides(shape));
    return graph_;
  }

 private:
  CudnnTensor Tensor(ConvolutionValue value, const Shape& shape) { return graph_.Tensor(value, shape, Strides(shape)); }

  std::vector<int64_t> Strides(const Shape& shape) const {
    std::vector<int64_t> strides = RowMajorStrides(problem_.channels_last ? WithChannelsLast(shape) : shape);
    if (problem_.channels_last) std::rotate(strides.begin() + 1, strides.end() - 1, strides.end());
    return strides;
  }

  template <typename Attributes>
  Attributes Window() const {
    return Attributes().set_padding(problem_.pads).set_stride(problem_.strides).set_dilation(problem_.dilations);
  }

  CudnnTensor Convolve() {
    switch (problem_.pass) {
      case ConvolutionPass::kX:
        return graph_.graph().conv_dgrad(Tensor(ConvolutionValue::kY, problem_.y),
                                         Tensor(ConvolutionValue::kW, problem_.w),
                                         Window<fe::graph::Conv_dgrad_attributes>());
      case ConvolutionPass::kW:
        return graph_.graph().conv_wgrad(Tensor(ConvolutionValue::kY, problem_.y),
                                         Tensor(ConvolutionValue::kX, problem_.x),
                                         Window<fe::graph::Conv_wgrad_attributes>());
      case ConvolutionPass::kY:
        break;
    }
    return graph_.graph().conv_fprop(Tensor(ConvolutionValue::kX, problem_.x), Tensor(ConvolutionValue::kW, problem_.w),
                                     Window<fe::graph::Conv_fprop_attributes>());
  }

  CudnnTensor Pointwise(CudnnTensor value, const CudnnTensor& other, fe::PointwiseMode_t mode) {
    value->set_dim(problem_.y).set_stride(Strides(problem_.y));
    const auto attributes = fe::graph::Pointwise_attributes().set_mode(mode);
    fe::graph::Graph& graph = graph_.graph();
    return other == nullptr ? graph.pointwise(value, attributes) : graph.pointwise(value, other, attributes);
  }

  const ConvolutionProblem& problem_;
  CudnnGraph graph_;
};

}  // namespace

absl::StatusOr<CudnnPlans> PlanConvolution(const Cudnn& cudnn, const ConvolutionProblem& problem,
                                           const std::string& name, int most) {
  return SharedOr(cudnn, KeyOf(problem), name, most,
                  [&] { return ConvolutionGraph(cudnn, problem).Describe().Plan(name, most); });
}

}  // namespace lockstep::device::cuda
