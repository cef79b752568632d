#include "common/graph/passes/join_products.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// A sum of several values, by additions whose results nothing else reads, but for that of the last.
struct Sum {
  std::vector<size_t> additions;
  std::vector<std::string> terms;
};

// A sum some of whose terms are products that one can compute.
struct Joint {
  OpAttributes attributes;
  std::vector<std::string> left, right;  // operands
  std::vector<std::string> rest;         // the other terms
};

class Joiner {
 public:
  explicit Joiner(Graph* graph) : graph_(graph), old_(std::move(graph->nodes)), gone_(old_.size(), false) {
    graph_->nodes.clear();
    for (size_t i = 0; i < old_.size(); ++i) {
      for (const std::string& output : old_[i].outputs) producers_[output] = i;
      for (const std::string& input : old_[i].inputs) ++reads_[input];
    }
    for (const std::string& output : graph_->outputs) ++reads_[output];
  }

  absl::StatusOr<int> Run() {
    std::map<size_t, Joint> joints;  // by their last addition
    std::vector<bool> seen(old_.size(), false);
    for (size_t i = old_.size(); i-- > 0;) {
      if (seen[i] || !IsAddition(old_[i])) continue;
      const Sum sum = SumOf(i);
      for (const size_t addition : sum.additions) seen[addition] = true;
      const std::vector<std::string> products = Products(sum.terms);
      if (products.size() < 2) continue;
      joints[i] = JointOf(sum, products);
      for (const size_t addition : sum.additions) gone_[addition] = true;
      for (const std::string& product : products) gone_[producers_.at(product)] = true;
    }
    for (size_t i = 0; i < old_.size(); ++i) {
      if (!gone_[i]) {
        Keep(std::move(old_[i]));
        continue;
      }
      graph_->values.erase(old_[i].outputs[0]);
      if (const auto found = joints.find(i); found != joints.end()) {
        LS_RETURN_IF_ERROR(Write(old_[i].outputs[0], std::move(found->second)));
      }
    }
    return static_cast<int>(joints.size());
  }

 private:
  bool IsAddition(const Node& node) const {
    const auto shape = [this](const std::string& value) { return graph_->values.at(value).shape; };
    return node.op == OpType::kAdd && shape(node.inputs[0]) == shape(node.outputs[0]) &&
           shape(node.inputs[1]) == shape(node.outputs[0]);
  }

  // The node that makes a value which one node alone reads.
  const Node* OnlyFor(const std::string& value) const {
    const auto found = producers_.find(value);
    return found == producers_.end() || reads_.at(value) != 1 ? nullptr : &old_[found->second];
  }

  Sum SumOf(size_t top) const {
    Sum sum;
    std::vector<std::string> open = {old_[top].outputs[0]};
    while (!open.empty()) {
      const std::string value = std::move(open.back());
      open.pop_back();
      const bool is_top = value == old_[top].outputs[0];
      const Node* node = is_top ? &old_[top] : OnlyFor(value);
      if (node == nullptr || !IsAddition(*node)) {
        sum.terms.push_back(value);
        continue;
      }
      sum.additions.push_back(producers_.at(value));
      open.push_back(node->inputs[1]);
      open.push_back(node->inputs[0]);
    }
    return sum;
  }

  // The product of two matrices of few rows, which are summed, that `value` is.
  const Node* ProductOf(const std::string& value) const {
    const Node* node = OnlyFor(value);
    if (node == nullptr || node->op != OpType::kGemm || node->inputs.size() > 2) return nullptr;
    const auto& gemm = std::get<GemmAttributes>(node->attributes);
    if (!gemm.trans_a || gemm.trans_b) return nullptr;
    const Shape& a = graph_->values.at(node->inputs[0]).shape;
    const Shape& b = graph_->values.at(node->inputs[1]).shape;
    // Copying reads and writes its rows; adding reads two gradients and writes one.
    return 2 * a[0] * (a[1] + b[1]) <= 3 * a[1] * b[1] ? node : nullptr;
  }

  // Those of the terms that one product can compute.
  std::vector<std::string> Products(const std::vector<std::string>& terms) const {
    std::vector<std::string> products;
    const Node* first = nullptr;
    for (const std::string& term : terms) {
      const Node* product = ProductOf(term);
      if (product == nullptr) continue;
      if (first == nullptr) first = product;
      const double alpha = std::get<GemmAttributes>(product->attributes).alpha;
      if (alpha == std::get<GemmAttributes>(first->attributes).alpha) products.push_back(term);
    }
    return products;
  }

  Joint JointOf(const Sum& sum, const std::vector<std::string>& products) const {
    Joint joint{.attributes = old_[producers_.at(products[0])].attributes};
    const std::set<std::string> joined(products.begin(), products.end());
    for (const std::string& term : sum.terms) {
      if (joined.count(term) == 0) joint.rest.push_back(term);
    }
    // Gradients are added from the last step to the first: this is the order in which a recurrence splits its input.
    for (size_t i = products.size(); i-- > 0;) {
      const Node& product = old_[producers_.at(products[i])];
      joint.left.push_back(product.inputs[0]);
      joint.right.push_back(product.inputs[1]);
    }
    return joint;
  }

  // Replaces values that are gone by those that stand for them.
  void UsePresent(std::vector<std::string>* values) const {
    for (std::string& value : *values) {
      if (const auto found = same_.find(value); found != same_.end()) value = found->second;
    }
  }

  // Appends a node of before, unless it concatenates what is concatenated already.
  void Keep(Node node) {
    UsePresent(&node.inputs);
    const bool rows = node.op == OpType::kConcat && std::get<ConcatAttributes>(node.attributes).axis == 0;
    const auto found = rows ? concats_.find(node.inputs) : concats_.end();
    const std::vector<std::string>& outputs = graph_->outputs;
    if (found == concats_.end() || std::find(outputs.begin(), outputs.end(), node.outputs[0]) != outputs.end()) {
      graph_->nodes.push_back(std::move(node));
      return;
    }
    same_[node.outputs[0]] = found->second;
    graph_->values.erase(node.outputs[0]);
  }

  absl::Status AddConcat(const std::string& name, const std::vector<std::string>& inputs) {
    concats_[inputs] = name;
    return Add(name, OpType::kConcat, inputs, ConcatAttributes{0});
  }

  absl::Status Add(const std::string& name, OpType op, std::vector<std::string> inputs, OpAttributes attributes) {
    return AppendNode(graph_, {name, op, std::move(inputs), {name}, std::move(attributes)});
  }

  // Writes the nodes of a sum that has the name `name`.
  absl::Status Write(const std::string& name, Joint joint) {
    for (auto* values : {&joint.left, &joint.right, &joint.rest}) UsePresent(values);
    const std::string own = absl::StrCat("lockstep.joined.", name);
    LS_RETURN_IF_ERROR(AddConcat(own + ".left", joint.left));
    LS_RETURN_IF_ERROR(AddConcat(own + ".right", joint.right));
    std::string total = joint.rest.empty() ? name : own;
    LS_RETURN_IF_ERROR(Add(total, OpType::kGemm, {own + ".left", own + ".right"}, joint.attributes));
    for (size_t i = 0; i < joint.rest.size(); ++i) {
      const std::string next = i + 1 == joint.rest.size() ? name : absl::StrCat(own, ".", i);
      LS_RETURN_IF_ERROR(Add(next, OpType::kAdd, {total, joint.rest[i]}, NoAttributes{}));
      total = next;
    }
    return absl::OkStatus();
  }

  Graph* graph_;
  std::vector<Node> old_;
  std::vector<bool> gone_;
  std::map<std::string, size_t> producers_;
  std::map<std::string, int> reads_;
  std::map<std::vector<std::string>, std::string> concats_;  // those that were added
  std::map<std::string, std::string> same_;                  // values that they stand for
};

}  // namespace

absl::StatusOr<int> JoinProducts(Graph* graph) { return Joiner(graph).Run(); }

}  // namespace lockstep
