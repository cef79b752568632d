#include "common/graph/onnx/batch_use.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/first_along.h"

namespace lockstep {
namespace {

struct Batches {
  int64_t one;
  int64_t other;
};

// Equal sizes, or sizes that hold the batch as often.
bool Follows(int64_t one, int64_t other, const Batches& batches) {
  return one == other || (one % batches.one == 0 && one / batches.one * batches.other == other);
}

bool AllFollow(const std::vector<int64_t>& one, const std::vector<int64_t>& other, const Batches& batches) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [&](int64_t a, int64_t b) { return Follows(a, b, batches); });
}

bool AllFollow(const std::optional<std::vector<int64_t>>& one, const std::optional<std::vector<int64_t>>& other,
               const Batches& batches) {
  return one.has_value() && other.has_value() && AllFollow(*one, *other, batches);
}

// Whether both are `Attributes` that differ in `sizes` alone, and there follow the batch.
template <typename Attributes, typename Sizes>
bool DifferIn(Sizes Attributes::*sizes, const OpAttributes& one, const OpAttributes& other, const Batches& batches) {
  const auto* const a = std::get_if<Attributes>(&one);
  if (a == nullptr || !std::holds_alternative<Attributes>(other)) return false;
  Attributes b = std::get<Attributes>(other);
  if (!AllFollow(a->*sizes, b.*sizes, batches)) return false;
  b.*sizes = a->*sizes;
  return *a == b;
}

bool DifferInSizes(const OpAttributes& one, const OpAttributes& other, const Batches& batches) {
  const auto differ_in = [&](auto sizes) { return DifferIn(sizes, one, other, batches); };
  // A slice that begins at the same place and ends with the batch has an entry per sample.
  return differ_in(&ReshapeAttributes::shape) || differ_in(&ExpandAttributes::shape) ||
         differ_in(&TileAttributes::repeats) || differ_in(&SplitAttributes::split) ||
         differ_in(&ResizeAttributes::sizes) || differ_in(&SliceAttributes::ends) ||
         differ_in(&RandomLikeAttributes::shape);
}

bool SameBytes(const Tensor& one, const Tensor& other) {
  return std::equal(one.bytes().begin(), one.bytes().end(), other.bytes().begin(), other.bytes().end());
}

// Whether both begin with the same entries along the one dimension in which they differ, which counts samples.
bool BeginAlike(const Tensor& one, const Tensor& other, const Batches& batches) {
  const Shape &a = one.shape(), &b = other.shape();
  if (one.dtype() != other.dtype() || a.size() != b.size()) return false;
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin());
  if (in_a == a.end()) return SameBytes(one, other);
  if (*in_a != batches.one || *in_b != batches.other || !std::equal(in_a + 1, a.end(), in_b + 1)) return false;
  const auto axis = static_cast<size_t>(in_a - a.begin());
  const int64_t common = std::min(batches.one, batches.other);
  return SameBytes(FirstAlong(one, axis, common), FirstAlong(other, axis, common));
}

// Whether anything in the file, its functions included, can ask for the size of the batch.
bool AsksForShapes(const onnx::ModelProto& model) {
  const auto asks = [](const onnx::NodeProto& node) {
    return node.op_type() == "Shape" || node.op_type() == "Size" || node.op_type() == "EyeLike" ||
           std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& a) { return a.has_g(); });
  };
  const auto any = [&](const auto& nodes) { return std::any_of(nodes.begin(), nodes.end(), asks); };
  return any(model.graph().node()) ||
         std::any_of(model.functions().begin(), model.functions().end(), [&](const auto& f) { return any(f.node()); });
}

}  // namespace

std::string UseOfBatch(const Graph& graph, int64_t batch, const Graph& of_other, int64_t other) {
  const Batches batches{batch, other};
  for (size_t i = 0; i < std::min(graph.nodes.size(), of_other.nodes.size()); ++i) {
    const Node &a = graph.nodes[i], &b = of_other.nodes[i];
    const bool same =
        a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs && a.attributes.index() == b.attributes.index();
    if (!same || !(a.attributes == b.attributes || DifferInSizes(a.attributes, b.attributes, batches))) {
      return NodeLabel(a);
    }
  }
  if (graph.nodes.size() != of_other.nodes.size()) {
    return absl::StrCat("the number of its nodes, ", graph.nodes.size(), " and ", of_other.nodes.size());
  }
  std::map<std::string, const Constant*> constants;
  for (const Constant& constant : of_other.constants) constants[constant.name] = &constant;
  for (const Constant& constant : graph.constants) {
    const auto found = constants.find(constant.name);
    const bool alike = found != constants.end() && BeginAlike(*constant.value, *found->second->value, batches);
    if (!alike) return absl::StrCat("the constant '", constant.name, "'");
  }
  return "";
}

std::map<int64_t, Graph> ImportForOtherBatches(const OnnxFile& file, OnnxImportOptions options) {
  std::map<int64_t, Graph> graphs;
  if (!AsksForShapes(file.model)) return graphs;
  const int64_t batch = options.batch;
  for (const int64_t other : {batch + 1, batch > 2 ? batch - 1 : batch + 2}) {
    options.batch = other;
    absl::StatusOr<ImportedModel> model = ImportOnnx(file, options);
    if (model.ok()) graphs.emplace(other, std::move(model->graph));
  }
  return graphs;
}

std::string UseOfBatch(const Graph& graph, int64_t batch, const std::map<int64_t, Graph>& others) {
  if (others.empty()) return "";
  const bool alone = batch == 1;
  const Graph& one = alone ? others.begin()->second : graph;
  for (const auto& [other, of_other] : others) {
    std::string use = UseOfBatch(one, alone ? others.begin()->first : batch, of_other, other);
    if (!use.empty()) return use;
  }
  return "";
}

}  // namespace lockstep
