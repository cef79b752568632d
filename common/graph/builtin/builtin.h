// The built-in architectures. Each emits the graph that an export of the same PyTorch module would give, with
// torch.nn's default initialisation and state_dict's names.
//
//   mlp     fc1, relu, fc2, ..., fc<n>            Flatten in front; hidden_sizes give fc1 to fc<n-1>
//   lenet   conv1 (6, 5x5, pad 2), relu, maxpool 2, conv2 (16, 5x5), relu, maxpool 2, fc1 (120), relu, fc2 (84), relu,
//           fc3                                    input [batch, channels, height, width]
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_BUILTIN_BUILTIN_H_
#define LOCKSTEP_COMMON_GRAPH_BUILTIN_BUILTIN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/ir.h"

namespace lockstep {

struct ModelSpec {
  std::string architecture;  // "mlp" or "lenet"
  // Size of the last layer: the number of classes for softmax_cross_entropy.
  int64_t outputs = 10;
  std::vector<int64_t> hidden_sizes = {};  // mlp
  std::string activation = "relu";         // mlp: "relu", "sigmoid" or "tanh"
  double dropout = 0.0;                    // mlp: after each hidden activation, in [0, 1)
  bool batch_norm = false;                 // mlp: bn<i> between fc<i> and its activation
};

// The forward graph, with one output called "logits". InvalidArgument for an unknown architecture or an input that it
// cannot take.
absl::StatusOr<Graph> BuildArchitecture(const ModelSpec& model, const GraphInput& input);

// The names that BuildArchitecture knows, for messages.
std::vector<std::string> ArchitectureNames();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILTIN_BUILTIN_H_
