// The inputs of ONNX ops that the op set has as typed attributes. Newer opsets moved axes, shapes and bounds from
// attributes to inputs; a graph that can be planned once needs them before it runs, so the importer turns them back
// into attributes, provided that their values are known.
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
  size_t input;  // position in ONNX's input list, before any other input is taken out
  const char* attribute;
  Kind kind;
};

// The rows of `op`, in rising order of `input`.
absl::Span<const AttributeInput> AttributeInputsOf(OpType op);

// Converts a tensor's elements to an attribute. InvalidArgument when their type does not fit `kind`, or when kInt or
// kFloat gets any number of elements but one.
absl::StatusOr<RawAttribute> AttributeFromTensor(AttributeInput::Kind kind, const Tensor& tensor);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ATTRIBUTE_INPUTS_H_
