#include "common/graph/onnx/open_batch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/graph/graph_editor.h"
#include "common/graph/passes/follow_batch.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

bool HasBatch(const Graph& graph) {
  return std::any_of(graph.inputs.begin(), graph.inputs.end(),
                     [](const GraphInput& input) { return !input.shape.empty() && input.shape[0] == kBatchDim; });
}

absl::StatusOr<Graph> Bound(Graph graph, int64_t batch) {
  BindBatch(&graph, batch);
  LS_RETURN_IF_ERROR(InferShapes(&graph));
  return graph;
}

// Whether a node makes a batch of its own out of any, so that what behind it has the batch for which it was read.
bool SetsBatch(const Node& node, const Graph& graph) {
  if (node.op != OpType::kResize) return false;
  const auto& resize = std::get<ResizeAttributes>(node.attributes);
  const auto rank = static_cast<int64_t>(graph.values.at(node.inputs[0]).shape.size());
  return !resize.sizes.empty() && (resize.axes.empty() || std::count(resize.axes.begin(), resize.axes.end(), 0) != 0 ||
                                   std::count(resize.axes.begin(), resize.axes.end(), -rank) != 0);
}

// How a shape that is `a` for one batch and `b` for another follows the batch.
std::optional<Shape> Follow(const Shape& a, const Shape& b, int64_t batch_a, int64_t batch_b) {
  if (a.size() != b.size()) return std::nullopt;
  Shape shape = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    shape[i] = a[i] == batch_a && b[i] == batch_b ? kBatchDim : kUnknownDim;
  }
  return shape;
}

}  // namespace

absl::StatusOr<BatchOpening> OpenBatch(const Graph& graph, int64_t batch) {
  BatchOpening result;
  LS_ASSIGN_OR_RETURN(result.graph, Bound(graph, batch));
  if (!HasBatch(graph)) return result;
  const auto sets_batch = [&](const Node& node) { return SetsBatch(node, result.graph); };
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), sets_batch)) return result;
  Graph loose = graph;
  FollowBatch(&loose, batch);
  const absl::StatusOr<Graph> same = Bound(loose, batch);
  const absl::StatusOr<Graph> other = Bound(loose, batch + 1);
  if (!same.ok() || !other.ok() || same->values != result.graph.values) return result;
  std::map<std::string, Shape> shapes;
  std::vector<std::string> names = graph.outputs;
  for (const GraphInput& input : graph.inputs) names.push_back(input.name);
  for (const std::string& name : names) {
    const std::optional<Shape> shape =
        Follow(same->values.at(name).shape, other->values.at(name).shape, batch, batch + 1);
    if (!shape.has_value()) return result;
    shapes[name] = *shape;
  }
  result.graph = *same;
  result.open = true;
  result.shapes = std::move(shapes);
  return result;
}

}  // namespace lockstep
