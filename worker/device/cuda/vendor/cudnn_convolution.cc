#include "worker/device/cuda/vendor/cudnn_convolution.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/vendor/convolution_problem.h"
#include "worker/device/cuda/vendor/engine_choice.h"
#include "worker/kernels/cuda/channel_kernels.h"
#include "worker/kernels/cuda/channels_last.h"

namespace lockstep::device::cuda {
namespace {

std::vector<Layout> LayoutsOf(const std::vector<Operand>& operands, bool channels_last) {
  std::vector<Layout> layouts;
  for (const Operand& operand : operands) {
    layouts.push_back(operand.present && channels_last ? ChannelsLast(operand.dtype, operand.shape) : Layout());
  }
  return layouts;
}

// What kernels of our own work on behind a pass.
ChannelValue ChannelsOf(const ConvolutionProblem& problem) {
  return {problem.dtype, problem.pass == ConvolutionPass::kX ? problem.x : problem.y, problem.channels_last};
}

class CudnnConvolution final : public Kernel {
 public:
  CudnnConvolution(const KernelRequest& request, ConvolutionProblem problem, std::shared_ptr<CudnnPlan> plan)
      : problem_(std::move(problem)),
        channels_(ChannelsOf(problem_)),
        plan_(std::move(plan)),
        inputs_(LayoutsOf(request.inputs, problem_.channels_last)),
        outputs_(LayoutsOf(request.outputs, problem_.channels_last)) {}

  const std::string& implementation() const override { return plan_->name(); }
  // The sums per channel come behind the pass and take its place.
  size_t workspace_bytes() const override {
    const size_t sums = problem_.bias_gradient ? SumPerChannelBytes(channels_) : 0;
    return std::max(plan_->workspace_bytes(), sums);
  }
  Layout input_layout(int input) const override { return inputs_[static_cast<size_t>(input)]; }
  Layout output_layout(int output) const override { return outputs_[static_cast<size_t>(output)]; }
  bool CanShare(int, int) const override { return false; }

  absl::Status Bind(const KernelArguments& arguments) override {
    workspace_ = arguments.workspace;
    per_channel_ = nullptr;
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
          per_channel_ = arguments.inputs[2];
          of_channels_ = result;
        }
        break;
      case ConvolutionPass::kW:
        addresses_ = {{Value::kY, first}, {Value::kX, second}, {Value::kW, result}};
        if (problem_.bias_gradient) {
          per_channel_ = arguments.outputs[1];
          of_channels_ = first;
        }
        break;
    }
    return absl::OkStatus();
  }

  absl::Status Launch(Stream& stream) override {
    const StreamHandle handle = HandleOf(stream);
    LS_RETURN_IF_ERROR(plan_->Execute(addresses_, workspace_, handle));
    if (problem_.bias_behind) return AddPerChannel(handle, channels_, per_channel_, of_channels_);
    if (problem_.bias_gradient) return SumPerChannel(handle, channels_, of_channels_, per_channel_, workspace_);
    return absl::OkStatus();
  }

 private:
  const ConvolutionProblem problem_;
  const ChannelValue channels_;
  const std::shared_ptr<CudnnPlan> plan_;
  const std::vector<Layout> inputs_;
  const std::vector<Layout> outputs_;
  std::vector<CudnnAddress> addresses_;
  // What kernels of our own read or write per channel, and the value whose channels they are.
  std::byte* per_channel_ = nullptr;
  std::byte* of_channels_ = nullptr;
  std::byte* workspace_ = nullptr;
};

using Kernels = std::vector<std::unique_ptr<Kernel>>;

absl::StatusOr<Kernels> MakeKernels(const Cudnn& cudnn, const KernelRequest& request, const ConvolutionProblem& problem,
                                    int most) {
  LS_ASSIGN_OR_RETURN(CudnnPlans plans, PlanConvolution(cudnn, problem, request.implementation, most));
  Kernels kernels;
  for (std::shared_ptr<CudnnPlan>& plan : plans) {
    kernels.push_back(std::make_unique<CudnnConvolution>(request, problem, std::move(plan)));
  }
  return kernels;
}

}  // namespace

absl::StatusOr<Kernels> MakeCudnnConvolution(const Cudnn& cudnn, const KernelRequest& request, int most) {
  LS_ASSIGN_OR_RETURN(ConvolutionProblem problem, DescribeConvolution(request, cudnn.options().tf32));
  if ((problem.bias_gradient || problem.bias_behind) && !FitsPerChannel(ChannelsOf(problem))) {
    return absl::UnimplementedError("a value of 2^31 elements per channel");
  }
  if (!request.implementation.empty()) {
    LS_ASSIGN_OR_RETURN(const EngineChoice choice, ParseEngineChoice(request.implementation));
    problem.channels_last = absl::EndsWith(choice.math, kChannelsLastSuffix);
    if (problem.channels_last && !request.free_layouts) {
      return absl::InvalidArgumentError(absl::StrCat("the kernel plan asks for implementation '",
                                                     request.implementation, "' where all values are row-major"));
    }
    return MakeKernels(cudnn, request, problem, most);
  }
  problem.channels_last = request.free_layouts && PrefersChannelsLast(problem);
  absl::StatusOr<Kernels> kernels = MakeKernels(cudnn, request, problem, most);
  if (!problem.channels_last || !absl::IsUnimplemented(kernels.status())) return kernels;
  problem.channels_last = false;
  return MakeKernels(cudnn, request, problem, most);
}

}  // namespace lockstep::device::cuda
