#include "common/graph/passes/attention_source.h"

#include <algorithm>
#include <utility>

namespace lockstep {

GraphIndex::GraphIndex(const Graph& graph) : graph_(graph), outputs_(graph.outputs.begin(), graph.outputs.end()) {
  for (const Constant& constant : graph.constants) constants_[constant.name] = constant.value.get();
  for (const Variable& variable : graph.variables) {
    if (variable.kind == VariableKind::kParameter) trained_.insert(variable.name);
  }
  std::set<std::string> needed = outputs_;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    for (const std::string& output : node.outputs) {
      if (!output.empty() && needed.count(output) > 0) live_.insert(&node);
    }
    if (live_.count(&node) > 0) needed.insert(node.inputs.begin(), node.inputs.end());
  }
  for (const Node& node : graph.nodes) {
    if (live_.count(&node) == 0) continue;
    bool trained = false;
    const bool stops = node.op == OpType::kIdentity;
    for (const std::string& input : node.inputs) {
      readers_[input].push_back(&node);
      trained = trained || (!stops && trained_.count(input) > 0);
    }
    for (const std::string& output : node.outputs) {
      producers_[output] = &node;
      if (trained) trained_.insert(output);
    }
  }
}

const Node* GraphIndex::Producer(const std::string& value) const {
  const auto found = producers_.find(value);
  if (found == producers_.end()) return nullptr;
  return found->second;
}

const Node* GraphIndex::OnlyReader(const std::string& value) const {
  const auto found = readers_.find(value);
  if (found == readers_.end() || found->second.size() != 1 || outputs_.count(value) > 0) return nullptr;
  return found->second[0];
}

const Tensor* GraphIndex::ConstantOf(const std::string& value) const {
  const auto found = constants_.find(value);
  return found == constants_.end() ? nullptr : found->second;
}

std::optional<double> GraphIndex::NumberOf(const std::string& value) const {
  const Tensor* tensor = ConstantOf(value);
  if (tensor == nullptr || tensor->num_elements() != 1) return std::nullopt;
  if (tensor->dtype() == DType::kF32) return tensor->elements<float>()[0];
  if (tensor->dtype() == DType::kF64) return tensor->elements<double>()[0];
  return std::nullopt;
}

namespace {

using Places = std::array<size_t, 4>;

// The factor of a product with a number, and what it multiplies.
std::optional<std::pair<std::string, double>> Scaled(const GraphIndex& index, const Node& node) {
  if (node.op == OpType::kScale) {
    return std::make_pair(node.inputs[0], std::get<ScaleAttributes>(node.attributes).factor);
  }
  if (node.op != OpType::kMul) return std::nullopt;
  for (const size_t i : {0, 1}) {
    const auto number = index.NumberOf(node.inputs[1 - i]);
    if (number && index.ShapeOf(node.inputs[i]) == index.ShapeOf(node.outputs[0])) {
      return std::make_pair(node.inputs[i], *number);
    }
  }
  return std::nullopt;
}

// [batch, fewer heads, length, size] where a Reshape to `all`, which is [batch, heads, length, size] or has the first
// two merged, repeats each head.
std::optional<std::string> BeforeRepetition(const GraphIndex& index, const Node& reshape, const Shape& all) {
  const Node* expand = index.Producer(reshape.inputs[0]);
  if (expand == nullptr || expand->op != OpType::kExpand) return std::nullopt;
  const Node* apart = index.Producer(expand->inputs[0]);
  if (apart == nullptr || (apart->op != OpType::kReshape && apart->op != OpType::kUnsqueeze)) return std::nullopt;
  const Shape& wide = index.ShapeOf(expand->outputs[0]);
  const Shape& few = index.ShapeOf(apart->inputs[0]);
  if (wide.size() != 5 || few.size() != 4 || few[1] * wide[2] != all[1]) return std::nullopt;
  if (few != Shape{all[0], few[1], all[2], all[3]}) return std::nullopt;
  if (wide != Shape{all[0], few[1], wide[2], all[2], all[3]}) return std::nullopt;
  if (index.ShapeOf(apart->outputs[0]) != Shape{all[0], few[1], 1, all[2], all[3]}) return std::nullopt;
  return apart->inputs[0];
}

// Reshape of a transposed Reshape([batch * heads, length, size]) to [batch, heads, size, length]: PyTorch transposes
// keys so. The value before, [batch, heads, length, size], or with fewer heads where the first Reshape repeats them.
std::optional<std::string> BeforeMergedTranspose(const GraphIndex& index, const Node& node, bool repeated) {
  if (node.op != OpType::kReshape) return std::nullopt;
  const Shape& after = index.ShapeOf(node.outputs[0]);
  const Node* transpose = index.Producer(node.inputs[0]);
  if (transpose == nullptr || transpose->op != OpType::kTranspose || after.size() != 4) return std::nullopt;
  if (index.ShapeOf(transpose->outputs[0]) != Shape{after[0] * after[1], after[2], after[3]}) return std::nullopt;
  const auto& order = std::get<TransposeAttributes>(transpose->attributes);
  if (order.Source(0, 3) != 0 || order.Source(1, 3) != 2) return std::nullopt;
  const Node* merge = index.Producer(transpose->inputs[0]);
  if (merge == nullptr || merge->op != OpType::kReshape) return std::nullopt;
  const Shape all = {after[0], after[1], after[3], after[2]};
  if (index.ShapeOf(merge->inputs[0]) == all) return merge->inputs[0];
  return repeated ? BeforeRepetition(index, *merge, all) : std::nullopt;
}

}  // namespace

std::optional<AttentionSource> FindAttentionSource(const GraphIndex& index, const std::string& operand, Places place,
                                                   bool repeated) {
  constexpr Places kHeads = {0, 1, 2, 3};
  constexpr Places kRows = {0, 2, 1, 3};
  constexpr Places kAcross = {0, 1, 3, 2};
  std::optional<AttentionSource> found;
  std::string value = operand;
  double factor = 1.0;
  while (index.ShapeOf(value).size() == 4) {
    if (place == kHeads || place == kRows) found = AttentionSource{value, place == kRows, factor};
    const Node* node = index.Producer(value);
    if (node == nullptr) break;
    if (const auto scaled = Scaled(index, *node); scaled) {
      value = scaled->first;
      factor *= scaled->second;
    } else if (node->op == OpType::kTranspose) {
      const auto& order = std::get<TransposeAttributes>(node->attributes);
      for (size_t& p : place) p = order.Source(p, 4);
      value = node->inputs[0];
    } else if (const auto before = BeforeMergedTranspose(index, *node, repeated && place == kAcross); before) {
      for (size_t& p : place) p = p == 2 ? 3 : p == 3 ? 2 : p;
      value = *before;
    } else if (repeated && place == kHeads && node->op == OpType::kReshape) {
      const auto few = BeforeRepetition(index, *node, index.ShapeOf(value));
      if (!few) break;
      value = *few;
    } else {
      break;
    }
  }
  return found;
}

}  // namespace lockstep
