#include "tests/contracts/run_nodes.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/tensor/poison.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/kernel.h"

namespace lockstep {
namespace {

void MustOk(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  MustOk(value.status());
  return *std::move(value);
}

// One node with row-major values of the host, which it brings into the layouts that its kernel asks for.
class NodeRun {
 public:
  NodeRun(device::Device& device, const Node& node, const NamedTensors& values, LayoutOf layout_of,
          device::Epilogue epilogue = device::Epilogue::kNone)
      : device_(device), node_(node), stream_(Must(device.NewStream())) {
    device::KernelRequest request{.node = &node, .epilogue = epilogue, .free_layouts = layout_of != nullptr};
    for (const std::string& name : node.inputs) {
      request.inputs.push_back(OperandOf(name, values));
      device::Operand& operand = request.inputs.back();
      if (operand.present && layout_of != nullptr) operand.layout = layout_of(operand.dtype, operand.shape);
    }
    for (const std::string& name : node.outputs) request.outputs.push_back(OperandOf(name, values));
    kernel_ = Must(device.MakeKernel(request));
  }

  // Whether there was a layout other than row-major.
  bool Launch(NamedTensors& values) {
    device::KernelArguments arguments;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      arguments.inputs.push_back(nullptr);
      if (node_.inputs[i].empty()) continue;
      const Tensor& tensor = values.at(node_.inputs[i]);
      std::byte* const row_major = Allocate(tensor.bytes().size());
      MustOk(stream_->CopyToDevice(row_major, tensor.data(), tensor.bytes().size()));
      arguments.inputs.back() = Reordered(tensor, row_major, {}, kernel_->input_layout(static_cast<int>(i)));
    }
    for (const std::string& name : node_.outputs) {
      arguments.outputs.push_back(name.empty() ? nullptr : AllocatePoisoned(values.at(name).bytes().size()));
    }
    arguments.workspace = AllocatePoisoned(kernel_->workspace_bytes());
    MustOk(kernel_->Bind(arguments));
    MustOk(kernel_->Launch(*stream_));
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i].empty()) continue;
      Tensor& tensor = values.at(node_.outputs[i]);
      const device::Layout layout = kernel_->output_layout(static_cast<int>(i));
      std::byte* const row_major = Reordered(tensor, arguments.outputs[i], layout, {});
      MustOk(stream_->CopyToHost(tensor.data(), row_major, tensor.bytes().size()));
    }
    MustOk(stream_->Synchronize());
    return other_layouts_;
  }

 private:
  static device::Operand OperandOf(const std::string& name, const NamedTensors& values) {
    if (name.empty()) return {.present = false};
    return {.dtype = values.at(name).dtype(), .shape = values.at(name).shape()};
  }

  std::byte* Allocate(size_t bytes) {
    buffers_.push_back(Must(device_.Allocate(bytes)));
    return buffers_.back()->address();
  }

  // For what a kernel has to write before it reads it.
  std::byte* AllocatePoisoned(size_t bytes) {
    std::byte* const address = Allocate(bytes);
    std::vector<std::byte> poison(bytes);
    Poison(absl::MakeSpan(poison));
    MustOk(stream_->CopyToDevice(address, poison.data(), bytes));
    MustOk(stream_->Synchronize());
    return address;
  }

  // Where the tensor at `address` lies in the layout `to`.
  std::byte* Reordered(const Tensor& tensor, std::byte* address, const device::Layout& from, const device::Layout& to) {
    if (from == to) return address;
    other_layouts_ = true;
    reorders_.push_back(Must(device_.MakeReorder({tensor.dtype(), tensor.shape(), from, to})));
    std::byte* const moved = Allocate(to.row_major() ? tensor.bytes().size() : to.bytes);
    MustOk(reorders_.back()->Bind({{address}, {moved}, nullptr}));
    MustOk(reorders_.back()->Launch(*stream_));
    return moved;
  }

  device::Device& device_;
  const Node& node_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;
  std::vector<std::unique_ptr<device::Kernel>> reorders_;
  std::unique_ptr<device::Kernel> kernel_;
  std::unique_ptr<device::Stream> stream_;
  bool other_layouts_ = false;
};

}  // namespace

std::unique_ptr<device::Device> MakeTestedDevice(TestedDevice which) {
  switch (which) {
    case TestedDevice::kReference:
      return Must(device::MakeDevice(device::DeviceKind::kReference, {}));
    case TestedDevice::kCpu:
      return Must(device::MakeDevice(device::DeviceKind::kCpu, {}));
    case TestedDevice::kCudaOnHost:
      break;
  }
  return Must(device::MakeCudaDevice({}));
}

void RunNodes(device::Device& device, const Graph& graph, NamedTensors* values) {
  CHECK(RunNodesIn(nullptr, device, graph, values) == 0);
}

int RunNodesIn(LayoutOf layout_of, device::Device& device, const Graph& graph, NamedTensors* values) {
  int count = 0;
  for (const Node& node : graph.nodes) {
    INFO(OpName(node.op));
    for (const std::string& name : node.outputs) {
      if (name.empty()) continue;
      const ValueInfo& info = graph.values.at(name);
      values->insert_or_assign(name, Tensor::Zeros(info.dtype, info.shape));
    }
    NodeRun run(device, node, *values, layout_of);
    if (run.Launch(*values)) ++count;
  }
  return count;
}

NamedTensors RunOneNode(device::Device& device, OpType op, OpAttributes attributes, std::vector<Tensor> inputs,
                        int outputs, device::Epilogue epilogue) {
  Graph graph;
  NamedTensors values;
  Node node{"n", op, {}, {}, std::move(attributes)};
  for (Tensor& input : inputs) {
    node.inputs.push_back(absl::StrCat("x", node.inputs.size()));
    graph.values[node.inputs.back()] = {input.dtype(), input.shape()};
    values.emplace(node.inputs.back(), std::move(input));
  }
  for (int i = 0; i < outputs; ++i) node.outputs.push_back(absl::StrCat("y", i));
  MustOk(AppendNode(&graph, node));
  for (const std::string& output : node.outputs) {
    const ValueInfo& info = graph.values.at(output);
    values.insert_or_assign(output, Tensor::Zeros(info.dtype, info.shape));
  }
  NodeRun(device, graph.nodes[0], values, nullptr, epilogue).Launch(values);
  NamedTensors results;
  for (const std::string& output : node.outputs) results.emplace(output, std::move(values.at(output)));
  return results;
}

}  // namespace lockstep
