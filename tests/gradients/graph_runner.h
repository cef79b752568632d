// Executes a graph node by node on the reference device, on host tensors: the oracle of gradient checks.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_GRADIENTS_GRAPH_RUNNER_H_
#define LOCKSTEP_TESTS_GRADIENTS_GRAPH_RUNNER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"
#include "worker/device/device.h"
#include "worker/device/kernel.h"

namespace lockstep {

class GraphRunner {
 public:
  // REQUIRES: shapes are inferred.
  static absl::StatusOr<std::unique_ptr<GraphRunner>> Make(const Graph& graph);

  // Any value of the graph. The caller fills inputs and variables; the others are those of the last Run.
  Tensor& value(const std::string& name) { return values_.at(name); }

  // Executes every node in order.
  absl::Status Run();

 private:
  GraphRunner() = default;
  absl::Status Prepare(const Graph& graph);
  absl::Status AddKernel(const Graph& graph, const Node& node);

  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Stream> stream_;
  std::map<std::string, Tensor> values_;
  std::vector<std::unique_ptr<device::Kernel>> kernels_;
  std::vector<std::unique_ptr<device::Buffer>> workspaces_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_GRADIENTS_GRAPH_RUNNER_H_
