// Accessors for the fields of ONNX nodes, and the constants that the parts of the importer share.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_NODE_FIELDS_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_NODE_FIELDS_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/graph/onnx/inline_functions.h"
#include "common/graph/ops/raw_attributes.h"
#include "protos/onnx.pb.h"

namespace lockstep {

// The export call that keeps every parameter's name and leaves the batch open; messages recommend it.
inline constexpr char kExportCall[] =
    "torch.onnx.export(model.train(), args, \"m.onnx\", optimize=False, "
    "dynamic_shapes=({0: torch.export.Dim(\"batch\")},))";

// What PyTorch calls the count of the batches that a normalisation has seen.
inline constexpr char kStepCountSuffix[] = "num_batches_tracked";

// Limits of one folded constant and of all together. A shape that a model computes is small: a larger constant is an
// attack or a mistake.
inline constexpr int64_t kMaxFoldedBytes = int64_t{1} << 30;
inline constexpr int64_t kMaxAllFoldedBytes = int64_t{2} << 30;

// Null when the node has no such attribute.
inline const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, absl::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

// Whether the node's op is one of ONNX.
inline bool IsOfOnnx(const onnx::NodeProto& node) { return node.domain().empty() || node.domain() == "ai.onnx"; }

// Of a LoopBegin or LoopEnd.
inline int64_t LoopNumber(const onnx::NodeProto& node) { return FindAttribute(node, kLoopNumber)->i(); }

inline bool IsFloatingType(int element_type) {
  return element_type == onnx::FLOAT || element_type == onnx::DOUBLE || element_type == onnx::FLOAT16 ||
         element_type == onnx::BFLOAT16;
}

// The inputs without the omitted ones at the end; OutputsOf does the same for outputs.
inline std::vector<std::string> InputsOf(const onnx::NodeProto& node) {
  std::vector<std::string> inputs(node.input().begin(), node.input().end());
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  return inputs;
}

inline std::vector<std::string> OutputsOf(const onnx::NodeProto& node) {
  std::vector<std::string> outputs(node.output().begin(), node.output().end());
  while (!outputs.empty() && outputs.back().empty()) outputs.pop_back();
  return outputs;
}

// The attribute's value when it is given and of type T; else `otherwise`.
template <typename T>
T AttributeOr(const RawAttributes& attributes, const std::string& name, T otherwise) {
  const auto found = attributes.find(name);
  const T* const value = found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
  return value == nullptr ? std::move(otherwise) : *value;
}

inline int64_t IntOf(const RawAttributes& attributes, const std::string& name, int64_t otherwise) {
  return AttributeOr<int64_t>(attributes, name, otherwise);
}

// Unimplemented for an attribute outside `known`, which the reader would silently ignore.
inline absl::Status OnlyAttributes(const RawAttributes& attributes, std::initializer_list<absl::string_view> known) {
  for (const auto& [name, value] : attributes) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return absl::UnimplementedError(absl::StrCat("attribute '", name, "' is not known"));
    }
  }
  return absl::OkStatus();
}

// InvalidArgument when the attribute is given and is not a float.
inline absl::StatusOr<double> FloatOf(const RawAttributes& attributes, const std::string& name, double otherwise) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return otherwise;
  if (const auto* value = std::get_if<double>(&found->second)) return *value;
  return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' has to be a number with a fraction"));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_NODE_FIELDS_H_
