// Inputs of ONNX ops that are typed attributes in the op set. Newer opsets moved axes, shapes and bounds from
// attributes to inputs; a graph that can be planned once needs them before it runs, so a reader turns them back when
// their values are known.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTE_INPUTS_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTE_INPUTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/op_type.h"
#include "common/graph/ops/raw_attributes.h"
#include "common/tensor/tensor.h"

namespace lockstep {

struct AttributeInput {
  enum class Kind : uint8_t { kInt, kInts, kFloat, kFloats };  // kInt: one whole number of any type
  OpType op;
  size_t input;  // its number in ONNX's list; those behind it move up once it is taken
  const char* attribute;
  Kind kind;
};

// Those of `op`, by number of the input.
absl::Span<const AttributeInput> AttributeInputsOf(OpType op);

// A tensor's elements as an attribute. InvalidArgument for elements of another kind or too many of them.
absl::StatusOr<RawAttribute> AttributeFromTensor(AttributeInput::Kind kind, const Tensor& tensor);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTE_INPUTS_H_
