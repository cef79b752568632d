// The graph that the chief builds and every worker plans: values named by strings, nodes in an order that can be
// executed, variables, constants. Free of protobuf, so that device libraries can include it.
//
// Invariants of a graph that Validate (validate.h) accepted
//   * Every value has one producer: an input, a variable, a constant, or one output of one node.
//   * Nodes stand after the producers of their inputs.
//   * Where `values` is filled (InferShapes), it holds every value, with non-negative dimensions.
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_IR_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_IR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/ops/attributes.h"
#include "common/graph/ops/op_type.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Stands for the batch in the leading dimension of an input until a batch size is bound.
inline constexpr int64_t kBatchDim = -1;

struct ValueInfo {
  DType dtype = DType::kF32;
  Shape shape;
  friend bool operator==(const ValueInfo&, const ValueInfo&) = default;
};

// One operation. An empty string among `inputs` is an omitted optional input; an empty string among `outputs` is an
// output that nothing reads.
struct Node {
  std::string name;  // unique in its graph
  OpType op = OpType::kAdd;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  OpAttributes attributes;
  friend bool operator==(const Node&, const Node&) = default;
};

// How a variable's elements are initialised at step 0.
struct InitRule {
  enum class Kind : uint8_t {
    kConstant,        // every element is `value`
    kUniform,         // uniform in [-value, value)
    kKaimingUniform,  // uniform in [-b, b) with b = value * sqrt(3 / fan_in); value is the gain
    kFile,            // tensor `file_tensor` of the safetensors file with this SHA-256
    kNormal,          // normally distributed around 0 with standard deviation `value`
  };
  Kind kind = Kind::kConstant;
  double value = 0.0;
  int64_t fan_in = 0;
  std::string file_sha256;  // lower-case hex
  std::string file_tensor;
  friend bool operator==(const InitRule&, const InitRule&) = default;
};

enum class VariableKind : uint8_t {
  kParameter,  // moved by the optimizer
  kStatistic,  // moved once per step by the mean, summed in a fixed order, of what the passes computed
  kFrozen,     // never changes: parameters that are not trained, buffers that belong to the model
};

// A tensor that lives from step to step, under its PyTorch name.
struct Variable {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  VariableKind kind = VariableKind::kParameter;
  InitRule init;
  friend bool operator==(const Variable&, const Variable&) = default;
};

struct GraphInput {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // the leading dimension may be kBatchDim
  friend bool operator==(const GraphInput&, const GraphInput&) = default;
};

// A small tensor that belongs to the graph itself.
struct Constant {
  std::string name;
  std::shared_ptr<const Tensor> value;
};

struct Graph {
  std::vector<GraphInput> inputs;
  std::vector<Variable> variables;
  std::vector<Constant> constants;
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
  // Filled by InferShapes; empty before.
  std::map<std::string, ValueInfo> values;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_IR_H_
