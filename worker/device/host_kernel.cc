#include "worker/device/host_kernel.h"

#include <algorithm>

#include "common/graph/ops/elementwise_ops.h"

namespace lockstep::device {
namespace {

class HostKernel final : public Kernel {
 public:
  HostKernel(HostCall call, HostFunction function, HostKernelTraits traits)
      : call_(std::move(call)), function_(function), traits_(std::move(traits)) {}

  const std::string& implementation() const override { return traits_.implementation; }
  size_t workspace_bytes() const override { return traits_.workspace_bytes; }
  Layout input_layout(int input) const override { return call_.input_infos[static_cast<size_t>(input)].layout; }
  Layout output_layout(int output) const override { return call_.output_infos[static_cast<size_t>(output)].layout; }
  bool CanShare(int input, int output) const override {
    return std::find(traits_.shareable.begin(), traits_.shareable.end(), std::pair(input, output)) !=
           traits_.shareable.end();
  }

  absl::Status Bind(const KernelArguments& arguments) override {
    if (arguments.inputs.size() != call_.input_infos.size() || arguments.outputs.size() != call_.output_infos.size()) {
      return absl::InternalError("a kernel is bound to another number of values than it was made for");
    }
    call_.inputs = arguments.inputs;
    call_.outputs = arguments.outputs;
    call_.workspace = arguments.workspace;
    return absl::OkStatus();
  }

  absl::Status Launch(Stream&) override {
    function_(call_);
    return absl::OkStatus();
  }

 private:
  HostCall call_;
  HostFunction function_;
  HostKernelTraits traits_;
};

}  // namespace

std::vector<std::pair<int, int>> ElementwiseSharing(const KernelRequest& request) {
  std::vector<std::pair<int, int>> pairs;
  if (!IsElementwise(request.node->op)) return pairs;
  const Operand& output = request.outputs[0];
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Operand& input = request.inputs[i];
    if (input.present && input.dtype == output.dtype && input.shape == output.shape) {
      pairs.emplace_back(static_cast<int>(i), 0);
    }
  }
  return pairs;
}

std::unique_ptr<Kernel> MakeHostKernel(const KernelRequest& request, HostFunction function, HostKernelTraits traits) {
  HostCall call{.op = request.node->op,
                .attributes = request.node->attributes,
                .input_infos = request.inputs,
                .output_infos = request.outputs,
                .inputs = {},
                .outputs = {}};
  for (auto* operands : {&call.input_infos, &call.output_infos}) {
    for (Operand& operand : *operands) {
      const bool takes = operand.present && operand.dtype == DType::kF32 && operand.shape == traits.layout_shape;
      operand.layout = takes ? traits.layout : Layout();
    }
  }
  return std::make_unique<HostKernel>(std::move(call), function, std::move(traits));
}

}  // namespace lockstep::device
