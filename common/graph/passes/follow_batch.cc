#include "common/graph/passes/follow_batch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/graph_editor.h"
#include "common/graph/ops/elementwise_ops.h"
#include "common/graph/passes/first_along.h"
#include "common/graph/passes/loss.h"
#include "common/graph/passes/samples_apart.h"

namespace lockstep {
namespace {

// The dimension that counts samples is found: for `batch`, that is the same one. `place`: where they are in the result;
// null where nobody knows: then the only one that can hold them, or the first one if that has as many entries.
void FollowReshape(int64_t batch, const SampleAxis* place, ReshapeAttributes& reshape) {
  std::vector<int64_t>& shape = reshape.shape;
  const bool has_rest = std::count(shape.begin(), shape.end(), -1) != 0;
  const bool has_zero = std::count(shape.begin(), shape.end(), 0) != 0;
  if (shape.empty() || has_rest || (has_zero && reshape.allow_zero)) return;
  const auto holds = [&](int64_t extent) { return extent > 0 && extent % batch == 0; };
  if (place != nullptr) {
    shape[static_cast<size_t>(place->axis)] = -1;
  } else if (std::count_if(shape.begin(), shape.end(), holds) == 1) {
    *std::find_if(shape.begin(), shape.end(), holds) = -1;
  } else if (shape[0] == batch) {
    shape[0] = -1;
  }
}

// A dimension that the operand has already stays what it is.
void FollowExpand(const Shape& from, ExpandAttributes& expand) {
  const size_t common = std::min(from.size(), expand.shape.size());
  for (size_t i = 1; i <= common; ++i) {
    int64_t& extent = expand.shape[expand.shape.size() - i];
    if (extent == from[from.size() - i]) extent = 1;
  }
}

void FollowSplit(int64_t batch, SplitAttributes& split) {
  const bool equal = std::all_of(split.split.begin(), split.split.end(),
                                 [&](int64_t part) { return part == split.split[0] && part % batch == 0; });
  if (equal) split.split.clear();
}

// Whether all slices of `tensor` along `axis` have the same bytes.
bool Repeats(const Tensor& tensor, size_t axis) {
  const Shape& shape = tensor.shape();
  size_t outer = 1, inner = static_cast<size_t>(DTypeSize(tensor.dtype()));
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(shape[i]);
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
  const std::byte* at = tensor.data();
  for (size_t o = 0; o < outer; ++o, at += inner * static_cast<size_t>(shape[axis])) {
    for (int64_t k = 1; k < shape[axis]; ++k) {
      if (std::memcmp(at, at + static_cast<size_t>(k) * inner, inner) != 0) return false;
    }
  }
  return true;
}

// Constants that repeat one row for each sample.
class ConstantRows {
 public:
  ConstantRows(Graph* graph, const Graph& bound, int64_t batch) : graph_(graph), bound_(bound), batch_(batch) {}

  // Gives the node one row in place of a constant's equal ones, where that makes no difference: others have all rows.
  void Follow(Node& node) {
    const std::vector<std::string> operands = node.inputs;
    for (size_t i = 0; i < operands.size(); ++i) {
      const auto found = std::find_if(graph_->constants.begin(), graph_->constants.end(),
                                      [&](const Constant& constant) { return constant.name == operands[i]; });
      if (found == graph_->constants.end()) continue;
      const std::shared_ptr<const Tensor> value = found->value;
      for (size_t axis = 0; axis < value->shape().size(); ++axis) {
        const size_t from_end = value->shape().size() - axis;
        if (value->shape()[axis] != batch_ || !IsAmongOthers(node, operands, i, from_end) || !Repeats(*value, axis)) {
          continue;
        }
        node.inputs[i] = FreshName(*graph_, operands[i] + ".row");
        graph_->constants.push_back({node.inputs[i], std::make_shared<Tensor>(FirstAlong(*value, axis, 1))});
        break;
      }
    }
  }

 private:
  // Whether dimension `from_end`, counted from the last, of operand `i` meets the same one of another operand: in this
  // node, or behind a product whose rows it gives.
  bool IsAmongOthers(const Node& node, const std::vector<std::string>& operands, size_t i, size_t from_end) const {
    if (IsElementwise(node.op)) {
      return std::any_of(operands.begin(), operands.end(), [&](const std::string& other) {
        if (other.empty() || other == operands[i]) return false;
        const Shape& shape = bound_.values.at(other).shape;
        return shape.size() >= from_end && shape[shape.size() - from_end] == batch_;
      });
    }
    const auto* const gemm = std::get_if<GemmAttributes>(&node.attributes);
    const bool rows = i == 0 && from_end == 2 && (node.op == OpType::kMatMul || (gemm != nullptr && !gemm->trans_a));
    if (!rows || bound_.values.at(operands[1]).shape.size() != 2) return false;
    const std::string& product = node.outputs[0];
    return std::all_of(graph_->nodes.begin(), graph_->nodes.end(), [&](const Node& reader) {
      const bool reads = std::count(reader.inputs.begin(), reader.inputs.end(), product) != 0;
      const size_t at =
          static_cast<size_t>(std::find(reader.inputs.begin(), reader.inputs.end(), product) - reader.inputs.begin());
      return !reads || (IsElementwise(reader.op) && IsAmongOthers(reader, reader.inputs, at, from_end));
    });
  }

  Graph* const graph_;
  const Graph& bound_;
  const int64_t batch_;
};

}  // namespace

void FollowOtherBatch(Graph* graph, int64_t batch, int64_t other) {
  FollowBatch(graph, batch);
  for (Node& node : graph->nodes) {
    if (!ComparesClasses(node.op) || other >= batch) continue;
    const auto labels = std::find_if(graph->constants.begin(), graph->constants.end(),
                                     [&](const Constant& constant) { return constant.name == node.inputs[1]; });
    if (labels == graph->constants.end() || labels->value->shape().empty() || labels->value->shape()[0] != batch)
      continue;
    node.inputs[1] = FreshName(*graph, node.inputs[1] + ".first");
    graph->constants.push_back({node.inputs[1], std::make_shared<Tensor>(FirstAlong(*labels->value, 0, other))});
  }
}

void FollowBatch(Graph* graph, int64_t batch) {
  Graph bound = *graph;
  BindBatch(&bound, batch);
  const bool known = InferShapes(&bound).ok();
  std::map<std::string, SampleAxis> places;
  if (known && batch > 1) places = FindSamples(bound, batch);
  ConstantRows constants(graph, bound, batch);
  for (Node& node : graph->nodes) {
    if (known && batch > 1) constants.Follow(node);
    if (auto* split = std::get_if<SplitAttributes>(&node.attributes); split != nullptr) FollowSplit(batch, *split);
    if (auto* random = std::get_if<RandomLikeAttributes>(&node.attributes); random != nullptr) {
      const bool follows =
          !node.inputs.empty() && !node.inputs[0].empty() && random->shape.has_value() && !random->shape->empty();
      if (follows && random->shape->front() == batch) random->shape->front() = kBatchDim;
    } else if (auto* reshape = std::get_if<ReshapeAttributes>(&node.attributes); reshape != nullptr) {
      const auto found = places.find(node.outputs[0]);
      FollowReshape(batch, found == places.end() ? nullptr : &found->second, *reshape);
    } else if (auto* expand = std::get_if<ExpandAttributes>(&node.attributes); expand != nullptr && known) {
      FollowExpand(bound.values.at(node.inputs[0]).shape, *expand);
    }
  }
}

}  // namespace lockstep
