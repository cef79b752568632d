#include "worker/device/cuda/cudnn_convolution.h"

#include <string>
#include <utility>
#include <vector>

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
  CudnnConvolution(ConvolutionProblem problem, std::shared_ptr<CudnnPlan> plan)
      : problem_(std::move(problem)), plan_(std::move(plan)) {}

  const std::string& implementation() const override { return plan_->name(); }
  size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  Layout input_layout(int) const override { return Layout(); }
  Layout output_layout(int) const override { return Layout(); }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    workspace_ = arguments.workspace;
    channels_ = nullptr;
    std::byte* const first = arguments.inputs[0];
    std::byte* const second = arguments.inputs[1];
    std::byte* const result = arguments.outputs[0];
    using Value = ConvolutionValue;
    switch (problem_.pass) {
      case ConvolutionPass::kY:
        addresses_ = {{Value::kX, first}, {Value::kW, second}, {Value::kY, result}};
        if (problem_.bias) addresses_.emplace_back(Value::kBias, arguments.inputs[2]);
        break;
      case ConvolutionPass::kX:
        addresses_ = {{Value::kY, first}, {Value::kW, second}, {Value::kX, result}};
        if (problem_.bias_behind) {
          channels_ = arguments.inputs[2];
          of_channels_ = result;
        }
        break;
      case ConvolutionPass::kW:
        addresses_ = {{Value::kY, first}, {Value::kX, second}, {Value::kW, result}};
        if (problem_.bias_gradient) {
          channels_ = arguments.outputs[1];
          of_channels_ = first;
        }
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Launch(Stream& stream) override {
    const StreamHandle handle = HandleOf(stream);
    LS_RETURN_IF_ERROR(plan_->Execute(addresses_, workspace_, handle));
    if (problem_.bias_behind) {
      return AddPerChannel(handle, ChannelsOf(problem_.x), reinterpret_cast<const float*>(channels_),
                           reinterpret_cast<float*>(of_channels_));
    }
    if (problem_.bias_gradient) {
      return SumPerChannel(handle, ChannelsOf(problem_.y), reinterpret_cast<const float*>(of_channels_),
                           reinterpret_cast<float*>(channels_));
    }
    return absl::OkStatus();
  }

 private:
  const ConvolutionProblem problem_;
  const std::shared_ptr<CudnnPlan> plan_;
  std::vector<CudnnAddress> addresses_;
  // What kernels of our own read or write per channel, and the value whose channels they are.
  std::byte* channels_ = nullptr;
  std::byte* of_channels_ = nullptr;
  std::byte* workspace_ = nullptr;
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCudnnConvolution(const Cudnn& cudnn,
                                                                          const KernelRequest& request, int most) {
  LS_ASSIGN_OR_RETURN(const ConvolutionProblem problem, DescribeConvolution(request, cudnn.options().tf32));
  LS_ASSIGN_OR_RETURN(CudnnPlans plans, PlanConvolution(cudnn, problem, request.implementation, most));
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (std::shared_ptr<CudnnPlan>& plan : plans) {
    kernels.push_back(std::make_unique<CudnnConvolution>(problem, std::move(plan)));
  }
  return kernels;
}

}  // namespace lockstep::device::cuda
