#include "tests/gradients/graph_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/host/reference_device.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<GraphRunner>> GraphRunner::Make(const Graph& graph) {
  auto runner = std::unique_ptr<GraphRunner>(new GraphRunner());
  LS_RETURN_IF_ERROR(runner->Prepare(graph));
  return runner;
}

absl::Status GraphRunner::Prepare(const Graph& graph) {
  LS_ASSIGN_OR_RETURN(device_, device::MakeReferenceDevice({}));
  LS_ASSIGN_OR_RETURN(stream_, device_->NewStream());
  for (const auto& [name, info] : graph.values) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(info.dtype, info.shape));
    values_.emplace(name, std::move(tensor));
  }
  for (const Constant& constant : graph.constants) values_.at(constant.name) = constant.value->Clone();
  for (const Node& node : graph.nodes) LS_RETURN_IF_ERROR(AddKernel(graph, node));
  return absl::OkStatus();
}

absl::Status GraphRunner::AddKernel(const Graph& graph, const Node& node) {
  device::KernelRequest request;
  request.node = &node;
  device::KernelArguments arguments;
  const auto add = [&](const std::string& name, std::vector<device::Operand>* operands,
                       std::vector<std::byte*>* addresses) {
    const bool present = !name.empty();
    device::Operand operand;
    operand.present = present;
    if (present) operand.dtype = graph.values.at(name).dtype;
    if (present) operand.shape = graph.values.at(name).shape;
    operands->push_back(std::move(operand));
    addresses->push_back(present ? values_.at(name).data() : nullptr);
  };
  for (const std::string& input : node.inputs) add(input, &request.inputs, &arguments.inputs);
  for (const std::string& output : node.outputs) add(output, &request.outputs, &arguments.outputs);
  absl::StatusOr<std::unique_ptr<device::Kernel>> kernel = device_->MakeKernel(request);
  if (!kernel.ok()) {
    return absl::Status(kernel.status().code(), absl::StrCat("node '", node.name, "': ", kernel.status().message()));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> workspace, device_->Allocate((*kernel)->workspace_bytes()));
  arguments.workspace = workspace->address();
  LS_RETURN_IF_ERROR((*kernel)->Bind(arguments));
  workspaces_.push_back(std::move(workspace));
  kernels_.push_back(*std::move(kernel));
  return absl::OkStatus();
}

absl::Status GraphRunner::Run() {
  for (const std::unique_ptr<device::Kernel>& kernel : kernels_) LS_RETURN_IF_ERROR(kernel->Launch(*stream_));
  return stream_->Synchronize();
}

}  // namespace lockstep
