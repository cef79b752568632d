// What an op family defines for each of its ops: how attributes are parsed and formatted, shape inference, and the
// gradient. The registry is an explicit list of the families.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_SCHEMA_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_SCHEMA_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/gradient_builder.h"
#include "common/graph/ops/ir.h"
#include "common/graph/ops/raw_attributes.h"

namespace lockstep {

// The inputs of a node while shapes are inferred: null for an omitted optional one.
using InputInfos = absl::Span<const ValueInfo* const>;

struct OpSchema {
  OpType type;
  int min_inputs;
  int max_inputs;
  int min_outputs;
  int max_outputs;
  // Errors of the four functions name neither node nor op: the callers add them.
  absl::StatusOr<OpAttributes> (*parse)(const RawAttributes& raw);
  RawAttributes (*format)(const OpAttributes& attributes);
  // Infos of all max_outputs outputs, used or not. REQUIRES: the number of inputs fits.
  absl::StatusOr<std::vector<ValueInfo>> (*infer)(const Node& node, InputInfos inputs);
  // Emits the gradients of the inputs that need one; the loss does not depend on an input that gets none. Null for ops
  // that cannot be differentiated.
  absl::Status (*gradient)(GradientBuilder& builder);
};

// The schema of an op; every OpType has one.
const OpSchema& SchemaOf(OpType type);

// "node 'conv1' (Conv)", for messages.
std::string NodeLabel(const Node& node);

// Parses attributes read from a file for the op; the error names the node.
absl::StatusOr<OpAttributes> ParseAttributes(OpType type, const std::string& node, const RawAttributes& raw);

// Checks the number of inputs and outputs and infers all max_outputs outputs. InvalidArgument names the node.
absl::StatusOr<std::vector<ValueInfo>> InferNode(const Node& node, InputInfos inputs);

// Appends a node and the inferred values of its outputs. InvalidArgument names the node. REQUIRES: the values of its
// inputs are inferred.
absl::Status AppendNode(Graph* graph, Node node);

// For ops without attributes.
absl::StatusOr<OpAttributes> ParseNoAttributes(const RawAttributes& raw);
RawAttributes FormatNoAttributes(const OpAttributes& attributes);

// Shape inference of floating-point ops whose inputs and only output all have the type and shape of input 0.
absl::StatusOr<std::vector<ValueInfo>> InferSameAsFirst(const Node& node, InputInfos inputs);

// One output of `dtype`, for operands of one type that broadcast; absent ones are null.
absl::StatusOr<std::vector<ValueInfo>> InferBroadcast(InputInfos inputs, DType dtype);

// `axis` as an index in [0, rank); a negative one counts from the end. InvalidArgument unless -rank <= axis < rank.
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, int64_t rank);

// The numpy broadcast of two shapes. InvalidArgument when they do not fit.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// OK when the value is F32 or F64; else InvalidArgument that names `what` and lists the types that are supported.
absl::Status CheckFloating(const ValueInfo& info, absl::string_view what);

// OK when the value is F32, F64, I64, I32, I8 or U8.
absl::Status CheckNumber(const ValueInfo& info, absl::string_view what);

// OK when the value is I32 or I64.
absl::Status CheckIndices(const ValueInfo& info, absl::string_view what);

// OK when dtype and shape are as expected; else InvalidArgument that states found and expected.
absl::Status CheckLike(const ValueInfo& info, const ValueInfo& expected, absl::string_view what);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SCHEMA_H_
