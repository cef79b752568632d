#include "common/graph/picked_rows.h"

#include <variant>

#include "absl/strings/str_cat.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

// The shape of a variable or constant; null for every other value.
const Shape* ShapeOfStored(const Graph& graph, const std::string& name) {
  for (const Variable& variable : graph.variables) {
    if (variable.name == name) return &variable.shape;
  }
  for (const Constant& constant : graph.constants) {
    if (constant.name == name) return &constant.value->shape();
  }
  return nullptr;
}

}  // namespace

std::optional<IndexRange> PickedRows(const Graph& graph, absl::string_view input) {
  std::optional<IndexRange> range;
  for (const Node& node : graph.nodes) {
    if (node.op != OpType::kGather || node.inputs.size() != 2 || node.inputs[1] != input) continue;
    const Shape* table = ShapeOfStored(graph, node.inputs[0]);
    if (table == nullptr || table->empty()) continue;
    const int64_t axis = std::get<GatherAttributes>(node.attributes).axis;
    if (axis != 0 && axis != -static_cast<int64_t>(table->size())) continue;
    const int64_t rows = table->front();
    if (range.has_value() && range->highest < rows) continue;
    range = IndexRange{-rows, rows - 1, absl::StrCat("the rows of '", node.inputs[0], "'")};
  }
  return range;
}

}  // namespace lockstep
