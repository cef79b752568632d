#include "common/graph/passes/split_einsums.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/einsum_equation.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using Labels = std::vector<size_t>;

// A value, and the label of each of its dimensions.
struct Labelled {
  std::string value;
  Labels labels;
};

bool Has(const Labels& labels, size_t label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// One Einsum while it becomes other nodes. Nodes are added until one fails; `status` keeps the first failure.
class Splitter {
 public:
  Splitter(Graph* graph, const Node& node, EinsumTerms terms)
      : graph_(graph), node_(node), terms_(std::move(terms)), kept_(terms_.output_rank) {
    for (size_t i = 0; i < kept_.size(); ++i) kept_[i] = i;
  }

  absl::Status Split() {
    std::vector<Labelled> operands;
    for (size_t i = 0; i < node_.inputs.size(); ++i) operands.push_back(WithoutOnes(i));
    Labelled product = Summed(operands[0], NeededBehind(operands, 1));
    for (size_t i = 1; i < operands.size(); ++i) {
      const std::set<size_t> needed = NeededBehind(operands, i + 1);
      product = Product(std::move(product), Summed(operands[i], With(needed, product.labels)), needed);
    }
    LS_RETURN_IF_ERROR(status_);
    return Finish(product);
  }

 private:
  std::string Add(OpType op, std::vector<std::string> inputs, OpAttributes attributes) {
    std::string name = absl::StrCat("lockstep.einsum.", node_.outputs[0], ".", next_++);
    if (status_.ok()) status_ = AppendNode(graph_, {name, op, std::move(inputs), {name}, std::move(attributes)});
    return name;
  }

  int64_t Extent(const Labels& labels) const {
    int64_t extent = 1;
    for (const size_t label : labels) extent *= terms_.extents[label];
    return extent;
  }

  Shape ShapeOf(const Labels& labels) const {
    Shape shape;
    for (const size_t label : labels) shape.push_back(terms_.extents[label]);
    return shape;
  }

  std::string Reshape(const std::string& value, Shape shape) {
    if (status_.ok() && graph_->values.at(value).shape == shape) return value;
    return Add(OpType::kReshape, {value}, ReshapeAttributes{std::move(shape), true});
  }

  // A dimension of 1 that broadcasts is as if the operand did not have it.
  Labelled WithoutOnes(size_t operand) {
    const std::string& value = node_.inputs[operand];
    const Shape shape = graph_->values.at(value).shape;
    Labelled kept{value, {}};
    Shape rest;
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t label = terms_.operands[operand][i];
      if (shape[i] == 1) continue;
      kept.labels.push_back(label);
      rest.push_back(shape[i]);
    }
    kept.value = Reshape(value, rest);
    return kept;
  }

  // Labels of the result and of the operands from `first` on.
  std::set<size_t> NeededBehind(const std::vector<Labelled>& operands, size_t first) const {
    std::set<size_t> needed(kept_.begin(), kept_.end());
    for (size_t i = first; i < operands.size(); ++i) {
      needed.insert(operands[i].labels.begin(), operands[i].labels.end());
    }
    return needed;
  }

  static std::set<size_t> With(std::set<size_t> labels, const Labels& more) {
    labels.insert(more.begin(), more.end());
    return labels;
  }

  Labelled Summed(const Labelled& x, const std::set<size_t>& needed) {
    Labelled summed{x.value, {}};
    ReduceAttributes over{.keep_dims = false};
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (needed.count(x.labels[i]) != 0) summed.labels.push_back(x.labels[i]);
      if (needed.count(x.labels[i]) == 0) over.axes.push_back(static_cast<int64_t>(i));
    }
    if (!over.axes.empty()) summed.value = Add(OpType::kReduceSum, {x.value}, over);
    return summed;
  }

  // The value with its dimensions in the order of `labels`, which are its own.
  std::string Ordered(const Labelled& x, const Labels& labels) {
    if (x.labels == labels) return x.value;
    TransposeAttributes order;
    for (const size_t label : labels) {
      order.perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
    }
    return Add(OpType::kTranspose, {x.value}, std::move(order));
  }

  static Labels Joined(const Labels& a, const Labels& b, const Labels& c) {
    Labels joined = a;
    joined.insert(joined.end(), b.begin(), b.end());
    joined.insert(joined.end(), c.begin(), c.end());
    return joined;
  }

  // [batch, rows or columns, summed] or [batch, summed, rows or columns], whichever `x` is without being transposed.
  std::string Matrix(const Labelled& x, const Labels& batch, const Labels& own, const Labels& summed, bool own_first,
                     bool* turned) {
    const Shape by_own = {Extent(batch), Extent(own), Extent(summed)};
    const Shape by_sum = {Extent(batch), Extent(summed), Extent(own)};
    const bool as_own = x.labels == Joined(batch, own, summed);
    const bool as_sum = x.labels == Joined(batch, summed, own);
    const bool own_leads = as_own || (!as_sum && own_first);
    *turned = own_leads != own_first;
    const std::string ordered = Ordered(x, own_leads ? Joined(batch, own, summed) : Joined(batch, summed, own));
    return Reshape(ordered, own_leads ? by_own : by_sum);
  }

  Labelled Product(const Labelled& a, const Labelled& b, const std::set<size_t>& needed) {
    Labels batch, summed, rows, columns;
    for (const size_t label : a.labels) {
      if (!Has(b.labels, label)) rows.push_back(label);
      if (Has(b.labels, label)) (needed.count(label) != 0 ? batch : summed).push_back(label);
    }
    for (const size_t label : b.labels) {
      if (!Has(a.labels, label)) columns.push_back(label);
    }
    const Labels labels = Joined(batch, rows, columns);
    if (summed.empty() && (rows.empty() || columns.empty())) return {Scaled(a, b, batch, rows, columns), labels};
    BatchMatMulAttributes turns;
    const std::string left = Matrix(a, batch, rows, summed, true, &turns.trans_a);
    const std::string right = Matrix(b, batch, columns, summed, false, &turns.trans_b);
    const std::string product = Add(OpType::kBatchMatMul, {left, right}, turns);
    return {Reshape(product, ShapeOf(labels)), labels};
  }

  // Element by element: nothing is summed, and one of the two has all dimensions.
  std::string Scaled(const Labelled& a, const Labelled& b, const Labels& batch, const Labels& rows,
                     const Labels& columns) {
    const auto spread = [&](const Labelled& x, const Labels& own, bool leads) {
      Shape shape = ShapeOf(Joined(batch, own, {}));
      const size_t other = leads ? columns.size() : rows.size();
      shape.insert(leads ? shape.end() : shape.begin() + static_cast<int64_t>(batch.size()), other, 1);
      return Reshape(Ordered(x, Joined(batch, own, {})), std::move(shape));
    };
    const std::string left = spread(a, rows, true);
    return Add(OpType::kMul, {left, spread(b, columns, false)}, NoAttributes{});
  }

  // The result's own dimensions, also those that no operand has but as 1, under the node's own name.
  absl::Status Finish(const Labelled& product) {
    Labels order;
    for (const size_t label : kept_) {
      if (Has(product.labels, label)) order.push_back(label);
    }
    const std::string ordered = Ordered(product, order);
    LS_RETURN_IF_ERROR(status_);
    return AppendNode(
        graph_,
        {node_.name, OpType::kReshape, {ordered}, node_.outputs, ReshapeAttributes{terms_.output_shape(), true}});
  }

  Graph* graph_;
  const Node& node_;
  const EinsumTerms terms_;
  Labels kept_;  // of the result
  absl::Status status_;
  int next_ = 0;
};

bool HasDiagonal(const EinsumTerms& terms) {
  return std::any_of(terms.operands.begin(), terms.operands.end(), [](const Labels& labels) {
    return std::set<size_t>(labels.begin(), labels.end()).size() != labels.size();
  });
}

}  // namespace

absl::Status SplitEinsums(Graph* graph) {
  std::vector<Node> nodes = std::exchange(graph->nodes, {});
  for (Node& node : nodes) {
    if (node.op != OpType::kEinsum) {
      graph->nodes.push_back(std::move(node));
      continue;
    }
    std::vector<Shape> shapes;
    for (const std::string& input : node.inputs) shapes.push_back(graph->values.at(input).shape);
    LS_ASSIGN_OR_RETURN(EinsumTerms terms, ParseEinsum(std::get<EinsumAttributes>(node.attributes).equation, shapes));
    if (HasDiagonal(terms)) {
      graph->nodes.push_back(std::move(node));
      continue;
    }
    graph->values.erase(node.outputs[0]);
    LS_RETURN_IF_ERROR(Splitter(graph, node, std::move(terms)).Split());
  }
  return absl::OkStatus();
}

}  // namespace lockstep
