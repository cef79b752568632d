#include "common/graph/onnx/batch_use.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"

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

// Attributes that differ in shapes alone, and there follow the batch.
bool DifferInShape(const OpAttributes& one, const OpAttributes& other, const Batches& batches) {
  if (const auto* const a = std::get_if<ReshapeAttributes>(&one)) {
    return AllFollow(a->shape, std::get<ReshapeAttributes>(other).shape, batches);
  }
  if (const auto* const a = std::get_if<ExpandAttributes>(&one)) {
    return AllFollow(a->shape, std::get<ExpandAttributes>(other).shape, batches);
  }
  if (const auto* const a = std::get_if<TileAttributes>(&one)) {
    return AllFollow(a->repeats, std::get<TileAttributes>(other).repeats, batches);
  }
  if (const auto* const a = std::get_if<SplitAttributes>(&one)) {
    SplitAttributes b = std::get<SplitAttributes>(other);
    const bool follow = AllFollow(a->split, b.split, batches);
    b.split = a->split;
    return follow && *a == b;
  }
  if (const auto* const a = std::get_if<RandomLikeAttributes>(&one)) {
    RandomLikeAttributes b = std::get<RandomLikeAttributes>(other);
    const bool follow = a->shape.has_value() && b.shape.has_value() && AllFollow(*a->shape, *b.shape, batches);
    b.shape = a->shape;
    return follow && *a == b;
  }
  if (const auto* const a = std::get_if<ResizeAttributes>(&one)) {
    ResizeAttributes b = std::get<ResizeAttributes>(other);
    const bool follow = AllFollow(a->sizes, b.sizes, batches);
    b.sizes = a->sizes;
    return follow && *a == b;
  }
  if (const auto* const a = std::get_if<SliceAttributes>(&one)) {
    // What begins at the same place and ends with the batch has an entry per sample.
    SliceAttributes b = std::get<SliceAttributes>(other);
    const bool follow = AllFollow(a->ends, b.ends, batches);
    b.ends = a->ends;
    return follow && *a == b;
  }
  return false;
}

// Whether both begin with the same entries along the one dimension in which they differ, which counts samples.
bool BeginAlike(const Tensor& one, const Tensor& other, const Batches& batches) {
  const Shape &a = one.shape(), &b = other.shape();
  if (one.dtype() != other.dtype() || a.size() != b.size()) return false;
  std::optional<size_t> axis;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (axis.has_value() || a[i] != batches.one || b[i] != batches.other) return false;
    axis = i;
  }
  if (!axis.has_value()) {
    return std::equal(one.bytes().begin(), one.bytes().end(), other.bytes().begin(), other.bytes().end());
  }
  size_t outer = 1, inner = static_cast<size_t>(DTypeSize(one.dtype()));
  for (size_t i = 0; i < *axis; ++i) outer *= static_cast<size_t>(a[i]);
  for (size_t i = *axis + 1; i < a.size(); ++i) inner *= static_cast<size_t>(a[i]);
  const size_t rows_a = static_cast<size_t>(a[*axis]) * inner, rows_b = static_cast<size_t>(b[*axis]) * inner;
  for (size_t o = 0; o < outer; ++o) {
    if (std::memcmp(one.data() + o * rows_a, other.data() + o * rows_b, std::min(rows_a, rows_b)) != 0) return false;
  }
  return true;
}

}  // namespace

std::string UseOfBatch(const Graph& graph, int64_t batch, const Graph& of_other, int64_t other) {
  const Batches batches{batch, other};
  for (size_t i = 0; i < std::min(graph.nodes.size(), of_other.nodes.size()); ++i) {
    const Node &a = graph.nodes[i], &b = of_other.nodes[i];
    const bool same =
        a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs && a.attributes.index() == b.attributes.index();
    if (!same || !(a.attributes == b.attributes || DifferInShape(a.attributes, b.attributes, batches))) {
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

}  // namespace lockstep
