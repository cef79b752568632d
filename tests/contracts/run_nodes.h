// Runs the nodes of a graph one by one on any device, from and to tensors of the host.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_CONTRACTS_RUN_NODES_H_
#define LOCKSTEP_TESTS_CONTRACTS_RUN_NODES_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/ops/ir.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"
#include "worker/device/kernel.h"
#include "worker/device/layout.h"

namespace lockstep {

using NamedTensors = std::map<std::string, Tensor>;

// The devices on which every op is tested: the reference, the CPU, and CUDA's own kernels in host execution.
enum class TestedDevice { kReference, kCpu, kCudaOnHost };
std::unique_ptr<device::Device> MakeTestedDevice(TestedDevice which);

// Runs every node. `values` has the graph's inputs, and afterwards all other values too.
void RunNodes(device::Device& device, const Graph& graph, NamedTensors* values);

// As RunNodes, with inputs in layouts of the device, and kernels that may ask for other layouts. Returns the number of
// nodes with an input or output that is not row-major.
using LayoutOf = device::Layout (*)(DType dtype, const Shape& shape);
int RunNodesIn(LayoutOf layout_of, device::Device& device, const Graph& graph, NamedTensors* values);

// Runs one node on `inputs`, with `epilogue` fused behind it, and returns all its outputs, "y0", "y1", ...
NamedTensors RunOneNode(device::Device& device, OpType op, OpAttributes attributes, std::vector<Tensor> inputs,
                        int outputs = 1, device::Epilogue epilogue = device::Epilogue::kNone);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_RUN_NODES_H_
