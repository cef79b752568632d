// A node and its shapes in one line, for the tests of op families.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_OP_TEST_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_OP_TEST_H_

#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/schema.h"

namespace lockstep {

inline ValueInfo F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
inline ValueInfo I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

// The inferred outputs of a node called "n" with these inputs and the fewest outputs that the op allows.
inline absl::StatusOr<std::vector<ValueInfo>> Infer(OpType op, const std::vector<ValueInfo>& inputs,
                                                    OpAttributes attributes = NoAttributes{}) {
  Node node{"n", op, {}, {}, std::move(attributes)};
  std::vector<const ValueInfo*> infos;
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back("i" + std::to_string(i));
    infos.push_back(&inputs[i]);
  }
  for (int i = 0; i < SchemaOf(op).min_outputs; ++i) node.outputs.push_back("o" + std::to_string(i));
  return InferNode(node, infos);
}

// The shape of the first output; {-1} when inference fails.
inline Shape InferShape(OpType op, const std::vector<ValueInfo>& inputs, OpAttributes attributes = NoAttributes{}) {
  const auto infos = Infer(op, inputs, std::move(attributes));
  return infos.ok() ? (*infos)[0].shape : Shape{-1};
}

// The message with which inference fails; empty when it does not.
inline std::string InferError(OpType op, const std::vector<ValueInfo>& inputs,
                              OpAttributes attributes = NoAttributes{}) {
  return std::string(Infer(op, inputs, std::move(attributes)).status().message());
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_OP_TEST_H_
