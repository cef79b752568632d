#include "worker/plan/rewrite.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"

namespace lockstep::worker {
namespace {

// Whether a Transpose swaps the last two dimensions and no others.
bool SwapsLastTwo(const Node& node, size_t rank) {
  if (node.op != OpType::kTranspose || rank < 2) return false;
  const auto& transpose = std::get<TransposeAttributes>(node.attributes);
  for (size_t i = 0; i < rank; ++i) {
    const size_t expected = i + 2 < rank ? i : i + 1 < rank ? rank - 1 : rank - 2;
    if (transpose.Source(i, rank) != expected) return false;
  }
  return true;
}

class Rewriter {
 public:
  explicit Rewriter(const Graph& graph) : graph_(graph) {}

  Graph Run() {
    Index();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) MoveReluGradient(i);
    Index();
    for (Node& node : graph_.nodes) TakeOperands(node);
    Index();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) TakeResult(i);
    DropMarked();
    Index();
    for (const Node& node : graph_.nodes) {
      const bool in_front =
          node.inputs.size() == 1 && (IsVariable(node.inputs[0]) || in_front_.count(node.inputs[0]) != 0);
      if (!in_front) break;
      in_front_.insert(node.outputs[0]);
    }
    std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (const Node& node : nodes) names_.insert(node.name);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (dropped_.count(i) == 0) Append(nodes, i);
    }
    dropped_.clear();
    RemoveDeadCode(&graph_);
    return std::move(graph_);
  }

 private:
  const Shape& ShapeOf(const std::string& value) const { return graph_.values.at(value).shape; }

  void Index() {
    producer_.clear();
    readers_.clear();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::string& output : graph_.nodes[i].outputs) producer_[output] = i;
      for (const std::string& input : graph_.nodes[i].inputs) readers_[input].push_back(i);
    }
  }

  const Node* ProducerOf(const std::string& value) const {
    const auto found = producer_.find(value);
    return found == producer_.end() ? nullptr : &graph_.nodes[found->second];
  }

  // The only node that reads a value that is no output of the graph.
  std::optional<size_t> OnlyReader(const std::string& value) const {
    const auto found = readers_.find(value);
    if (found == readers_.end() || found->second.size() != 1) return std::nullopt;
    const auto& outputs = graph_.outputs;
    if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) return std::nullopt;
    return found->second[0];
  }

  // A product of two matrices or stacks of them, without a third operand.
  bool IsProduct(const Node& node) const {
    if (node.op != OpType::kMatMul && node.op != OpType::kBatchMatMul && node.op != OpType::kGemm) return false;
    if (node.inputs.size() > 2 && !node.inputs[2].empty()) return false;
    return ShapeOf(node.inputs[0]).size() >= 2 && ShapeOf(node.inputs[1]).size() >= 2;
  }

  // The attributes of a product as those of Gemm.
  static GemmAttributes FormOf(const Node& node) {
    if (node.op == OpType::kMatMul) return {};
    if (node.op == OpType::kGemm) return std::get<GemmAttributes>(node.attributes);
    const auto& product = std::get<BatchMatMulAttributes>(node.attributes);
    return {.trans_a = product.trans_a, .trans_b = product.trans_b};
  }

  static void SetForm(Node& node, const GemmAttributes& form) {
    if (node.op == OpType::kGemm) {
      node.attributes = form;
      return;
    }
    node.op = form.trans_a || form.trans_b ? OpType::kBatchMatMul : OpType::kMatMul;
    if (node.op == OpType::kMatMul) node.attributes = NoAttributes{};
    if (node.op == OpType::kBatchMatMul) node.attributes = BatchMatMulAttributes{form.trans_a, form.trans_b};
  }

  // ReluGrad(MaxPoolGrad(dY, argmax), X) where X is what was pooled: the only elements that get a gradient are those
  // that won, and they are Y.
  void MoveReluGradient(size_t i) {
    Node& relu = graph_.nodes[i];
    if (relu.op != OpType::kReluGrad || !OnlyReader(relu.inputs[0])) return;
    const auto producer = producer_.find(relu.inputs[0]);
    if (producer == producer_.end() || graph_.nodes[producer->second].op != OpType::kMaxPoolGrad) return;
    Node& pool = graph_.nodes[producer->second];
    const Node* forward = ProducerOf(pool.inputs[1]);
    if (forward == nullptr || forward->op != OpType::kMaxPoolWithArgmax || forward->inputs[0] != relu.inputs[1]) return;
    const std::string between = pool.outputs[0];
    const std::string dx = relu.outputs[0];
    relu.inputs = {pool.inputs[0], forward->outputs[0]};
    relu.outputs = {between};
    pool.inputs[0] = between;
    pool.outputs = {dx};
    graph_.values[between] = graph_.values.at(relu.inputs[0]);
    std::swap(relu, pool);
  }

  // Reads operands as they were before they were transposed.
  void TakeOperands(Node& node) {
    if (!IsProduct(node)) return;
    GemmAttributes form = FormOf(node);
    for (const size_t operand : {0, 1}) {
      const Node* before = ProducerOf(node.inputs[operand]);
      if (before == nullptr || !SwapsLastTwo(*before, ShapeOf(before->inputs[0]).size())) continue;
      node.inputs[operand] = before->inputs[0];
      bool& transposed = operand == 0 ? form.trans_a : form.trans_b;
      transposed = !transposed;
    }
    SetForm(node, form);
  }

  // Node `i`, a Transpose, joins the product whose result only it reads: (A B)^T = B^T A^T.
  void TakeResult(size_t i) {
    const Node& transpose = graph_.nodes[i];
    if (transpose.op != OpType::kTranspose) return;
    const std::string from = transpose.inputs[0];
    const auto producer = producer_.find(from);
    if (producer == producer_.end() || !SwapsLastTwo(transpose, ShapeOf(from).size()) || !OnlyReader(from)) return;
    Node& product = graph_.nodes[producer->second];
    if (!IsProduct(product)) return;
    GemmAttributes form = FormOf(product);
    std::swap(product.inputs[0], product.inputs[1]);
    const bool trans_a = form.trans_a;
    form.trans_a = !form.trans_b;
    form.trans_b = !trans_a;
    SetForm(product, form);
    product.outputs[0] = transpose.outputs[0];
    producer_[product.outputs[0]] = producer->second;
    producer_.erase(from);
    graph_.values.erase(from);
    dropped_.insert(i);
  }

  void DropMarked() {
    std::vector<Node> kept;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (dropped_.count(i) == 0) kept.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(kept);
    dropped_.clear();
  }

  bool IsVariable(const std::string& value) const {
    return std::any_of(graph_.variables.begin(), graph_.variables.end(),
                       [&](const Variable& variable) { return variable.name == value; });
  }

  // The variable [n], or its cast in front of everything, that `add` adds to `value`; empty where it adds something
  // else.
  std::string BiasOf(const Node& add, const std::string& value, int64_t n) const {
    if (add.op != OpType::kAdd) return "";
    const std::string& other = add.inputs[add.inputs[0] == value ? 1 : 0];
    const bool known = IsVariable(other) || in_front_.count(other) != 0;
    return known && ShapeOf(other) == Shape{n} ? other : "";
  }

  // A name for a value and the node that makes it: `name`, unless the model calls something so.
  std::string Fresh(std::string name) {
    while (graph_.values.count(name) > 0 || names_.count(name) > 0) name += "_";
    names_.insert(name);
    return name;
  }

  std::string Reshaped(std::string name, const std::string& value, const Shape& shape) {
    if (ShapeOf(value) == shape) return value;
    name = Fresh(std::move(name));
    graph_.values[name] = {graph_.values.at(value).dtype, shape};
    graph_.nodes.push_back({name, OpType::kReshape, {value}, {name}, ReshapeAttributes{shape, true}});
    return name;
  }

  // Appends node `i`; a product over stacked rows as one Gemm, with the bias that is added to it.
  void Append(std::vector<Node>& nodes, size_t i) {
    Node& node = nodes[i];
    const GemmAttributes form = IsProduct(node) ? FormOf(node) : GemmAttributes{};
    if (!IsProduct(node) || ShapeOf(node.inputs[1]).size() != 2 ||
        (form.trans_a && ShapeOf(node.inputs[0]).size() != 2)) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    std::string output = node.outputs[0];
    const Shape shape = ShapeOf(output);
    std::string bias;
    if (const auto reader = OnlyReader(output); reader.has_value()) bias = BiasOf(nodes[*reader], output, shape.back());
    const Shape& a = ShapeOf(node.inputs[0]);
    if (a.size() == 2 && bias.empty()) {
      graph_.nodes.push_back(std::move(node));
      return;
    }
    if (!bias.empty()) {
      const size_t add = *OnlyReader(output);
      output = nodes[add].outputs[0];
      dropped_.insert(add);
    }
    const Shape rows = {std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>()), shape.back()};
    Shape stacked = a;
    if (a.size() > 2) stacked = {rows[0], a.back()};
    Node gemm{node.name, OpType::kGemm, {Reshaped(node.name + ".rows", node.inputs[0], stacked), node.inputs[1]}};
    if (!bias.empty()) gemm.inputs.push_back(bias);
    gemm.attributes = form;
    const bool direct = rows == shape;
    gemm.outputs = {direct ? output : Fresh(absl::StrCat(node.name, ".product"))};
    if (!direct) graph_.values[gemm.outputs[0]] = {graph_.values.at(output).dtype, rows};
    const std::string product = gemm.outputs[0];
    graph_.nodes.push_back(std::move(gemm));
    if (!direct) {
      graph_.nodes.push_back(
          {Fresh(node.name + ".shape"), OpType::kReshape, {product}, {output}, ReshapeAttributes{shape, true}});
    }
  }

  Graph graph_;
  std::map<std::string, size_t> producer_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::set<size_t> dropped_;
  std::set<std::string> names_;     // of the model's nodes, and of what was added
  std::set<std::string> in_front_;  // casts and moves of variables, in front of everything that computes
};

}  // namespace

Graph RewriteForPlan(const Graph& graph) { return Rewriter(graph).Run(); }

}  // namespace lockstep::worker
