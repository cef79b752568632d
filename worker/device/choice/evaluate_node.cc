#include "worker/device/choice/evaluate_node.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"
#include "worker/device/choice/devices.h"
#include "worker/device/kernel.h"

namespace lockstep::device {

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Node& node, absl::Span<const Tensor* const> inputs) {
  std::vector<ValueInfo> infos;
  for (const Tensor* input : inputs)
    infos.push_back(input == nullptr ? ValueInfo{} : ValueInfo{input->dtype(), input->shape()});
  std::vector<const ValueInfo*> places;
  for (size_t i = 0; i < inputs.size(); ++i) places.push_back(inputs[i] == nullptr ? nullptr : &infos[i]);
  LS_ASSIGN_OR_RETURN(const std::vector<ValueInfo> results, InferNode(node, places));

  KernelRequest request;
  request.node = &node;
  KernelArguments arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    request.inputs.push_back({inputs[i] != nullptr, infos[i].dtype, infos[i].shape, {}});
    // Kernels take addresses that may be written to, but never write to an input that is not also an output.
    arguments.inputs.push_back(inputs[i] == nullptr ? nullptr : const_cast<std::byte*>(inputs[i]->data()));
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    LS_ASSIGN_OR_RETURN(Tensor output, Tensor::Create(results[i].dtype, results[i].shape));
    request.outputs.push_back({true, results[i].dtype, results[i].shape, {}});
    arguments.outputs.push_back(output.data());
    outputs.push_back(std::move(output));
  }

  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Device> reference, MakeDevice(DeviceKind::kReference, {}));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, reference->NewStream());
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, reference->MakeKernel(request));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Buffer> workspace, reference->Allocate(kernel->workspace_bytes()));
  arguments.workspace = workspace->address();
  LS_RETURN_IF_ERROR(kernel->Bind(arguments));
  LS_RETURN_IF_ERROR(kernel->Launch(*stream));
  return outputs;
}

}  // namespace lockstep::device
