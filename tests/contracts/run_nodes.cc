#include "tests/contracts/run_nodes.h"

#include <catch2/catch.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "worker/device/cuda/make_device.h"
#include "worker/device/devices.h"
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
  const auto stream = Must(device.NewStream());
  for (const Node& node : graph.nodes) {
    INFO(OpName(node.op));
    device::KernelRequest request{.node = &node};
    device::KernelArguments arguments;
    std::vector<std::unique_ptr<device::Buffer>> buffers;
    const auto allocate = [&](const Tensor& tensor) {
      buffers.push_back(Must(device.Allocate(tensor.bytes().size())));
      return buffers.back()->address();
    };
    for (const std::string& name : node.inputs) {
      if (name.empty()) {
        request.inputs.push_back({.present = false});
        arguments.inputs.push_back(nullptr);
        continue;
      }
      const Tensor& tensor = values->at(name);
      request.inputs.push_back({.dtype = tensor.dtype(), .shape = tensor.shape()});
      arguments.inputs.push_back(allocate(tensor));
      MustOk(stream->CopyToDevice(arguments.inputs.back(), tensor.data(), tensor.bytes().size()));
    }
    for (const std::string& name : node.outputs) {
      if (name.empty()) {
        request.outputs.push_back({.present = false});
        arguments.outputs.push_back(nullptr);
        continue;
      }
      const ValueInfo& info = graph.values.at(name);
      const Tensor& tensor = values->insert_or_assign(name, Tensor::Zeros(info.dtype, info.shape)).first->second;
      request.outputs.push_back({.dtype = info.dtype, .shape = info.shape});
      arguments.outputs.push_back(allocate(tensor));
    }
    const auto kernel = Must(device.MakeKernel(request));
    const auto workspace = Must(device.Allocate(kernel->workspace_bytes()));
    arguments.workspace = workspace->address();
    MustOk(kernel->Bind(arguments));
    MustOk(kernel->Launch(*stream));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      Tensor& tensor = values->at(node.outputs[i]);
      MustOk(stream->CopyToHost(tensor.data(), arguments.outputs[i], tensor.bytes().size()));
    }
    MustOk(stream->Synchronize());
  }
}

NamedTensors RunOneNode(device::Device& device, OpType op, OpAttributes attributes, std::vector<Tensor> inputs,
                        int outputs) {
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
  RunNodes(device, graph, &values);
  NamedTensors results;
  for (const std::string& output : node.outputs) results.emplace(output, std::move(values.at(output)));
  return results;
}

}  // namespace lockstep
