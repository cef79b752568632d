#include "worker/device/cuda/cudnn_convolution.h"

#include <string>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/device/cuda/channel_kernels.h"
#include "worker/device/cuda/convolution_problem.h"
#include "worker/device/cuda/cuda_stream.h"

namespace lockstep::device::cuda {
namespace {

ChannelShape ChannelsOf(const Shape& shape) {
  ChannelShape channels = {.samples = shape[0], .channels = shape[1]};
  for (size_t i = 2; i < shape.size(); ++i) channels.volume *= shape[i];
  return channels;
}

class CudnnConvolution final : public Kernel {
 public:
  CudnnConvolution(ConvolutionProblem problem, std::unique_ptr<CudnnPlan> plan)
      : problem_(std::move(problem)), plan_(std::move(plan)) {}

  const std::string& implementation() const override { return plan_->name(); }
  size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  Layout input_layout(int) const override { return Layout(); }
  Layout output_layout(int) const override { return Layout(); }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    workspace_ = arguments.workspace;
    addresses_ = {};
    channels_ = nullptr;
    switch (problem_.pass) {
      case ConvolutionPass::kY:
        addresses_.x = arguments.inputs[0];
        addresses_.w = arguments.inputs[1];
        addresses_.y = arguments.outputs[0];
        if (problem_.bias) addresses_.bias = arguments.inputs[2];
        break;
      case ConvolutionPass::kX:
        addresses_.y = arguments.inputs[0];
        addresses_.w = arguments.inputs[1];
        addresses_.x = arguments.outputs[0];
        if (problem_.bias_behind) channels_ = arguments.inputs[2];
        break;
      case ConvolutionPass::kW:
        addresses_.y = arguments.inputs[0];
        addresses_.x = arguments.inputs[1];
        addresses_.w = arguments.outputs[0];
        if (problem_.bias_gradient) channels_ = arguments.outputs[1];
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Launch(Stream& stream) override {
    const StreamHandle handle = HandleOf(stream);
    LS_RETURN_IF_ERROR(plan_->Execute(addresses_, workspace_, handle));
    if (problem_.bias_behind) {
      return AddPerChannel(handle, ChannelsOf(problem_.x), reinterpret_cast<const float*>(channels_),
                           reinterpret_cast<float*>(addresses_.x));
    }
    if (problem_.bias_gradient) {
      return SumPerChannel(handle, ChannelsOf(problem_.y), reinterpret_cast<const float*>(addresses_.y),
                           reinterpret_cast<float*>(channels_));
    }
    return absl::OkStatus();
  }

 private:
  const ConvolutionProblem problem_;
  const std::unique_ptr<CudnnPlan> plan_;
  ConvolutionAddresses addresses_;
  // What kernels of our own read or write per channel.
  std::byte* channels_ = nullptr;
  std::byte* workspace_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> MakeCudnnConvolution(const Cudnn& cudnn, const KernelRequest& request) {
  LS_ASSIGN_OR_RETURN(ConvolutionProblem problem, DescribeConvolution(request, cudnn.options().tf32));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<CudnnPlan> plan, PlanConvolution(cudnn, problem, request.implementation));
  return std::make_unique<CudnnConvolution>(std::move(problem), std::move(plan));
}

}  // namespace lockstep::device::cuda
