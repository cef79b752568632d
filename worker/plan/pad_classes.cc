#include "worker/plan/pad_classes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/graph/graph_editor.h"
#include "common/tensor/bf16.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kRowBytes = 16;

bool Has(const Node& node, size_t input) { return node.inputs.size() > input && !node.inputs[input].empty(); }

// A product of two matrices as Gemm has it; nullopt for every other node.
std::optional<GemmAttributes> FormOf(const Node& node, const Graph& graph) {
  for (const size_t operand : {0, 1}) {
    if (!Has(node, operand) || graph.values.at(node.inputs[operand]).shape.size() != 2) return std::nullopt;
  }
  switch (node.op) {
    case OpType::kGemm:
      return std::get<GemmAttributes>(node.attributes);
    case OpType::kMatMul:
      return GemmAttributes{};
    case OpType::kBatchMatMul: {
      const auto& product = std::get<BatchMatMulAttributes>(node.attributes);
      return GemmAttributes{.trans_a = product.trans_a, .trans_b = product.trans_b};
    }
    default:
      return std::nullopt;
  }
}

// Of one product of scores: what reads them, and what has to change.
struct Scores {
  size_t product = 0;
  int64_t classes = 0;
  int64_t padded = 0;
  std::set<std::string> wide;                    // values that get more columns
  std::set<size_t> losses;                       // nodes that take labels
  std::set<size_t> sums;                         // nodes that add up values of which both have to get more columns
  std::map<size_t, size_t> by_weights;           // products that sum over classes: the operand that is the weights
  std::map<size_t, int64_t> cut;                 // nodes whose result is cut off: along which axis
  std::map<size_t, std::vector<Node>> in_front;  // what is added
  std::map<size_t, std::vector<Node>> right_behind;
};

class Padder {
 public:
  explicit Padder(Graph* graph) : graph_(*graph) {}

  int Run() {
    int changed = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      readers_.clear();
      for (size_t n = 0; n < graph_.nodes.size(); ++n) {
        for (const std::string& input : graph_.nodes[n].inputs) readers_[input].insert(n);
      }
      std::optional<Scores> scores = Find(i);
      if (!scores.has_value()) continue;
      Pad(*std::move(scores));
      ++changed;
    }
    return changed;
  }

 private:
  const Shape& ShapeOf(const std::string& value) const { return graph_.values.at(value).shape; }
  bool IsOutput(const std::string& value) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  }

  // Nothing unless node `at` gives scores of classes, all readers are known, and one of them is a loss.
  std::optional<Scores> Find(size_t at) const {
    const Node& product = graph_.nodes[at];
    const std::optional<GemmAttributes> form = FormOf(product, graph_);
    if (!form.has_value() || graph_.values.at(product.outputs[0]).dtype != DType::kBF16) return std::nullopt;
    Scores scores{.product = at, .classes = ShapeOf(product.outputs[0])[1]};
    const int64_t bytes = scores.classes * DTypeSize(DType::kBF16);
    if (scores.classes < kLeastPaddedClasses || bytes % kRowBytes == 0) return std::nullopt;
    if (Has(product, 2) && (form->beta != 1 || ShapeOf(product.inputs[2]) != Shape{scores.classes}))
      return std::nullopt;
    scores.padded = (scores.classes + kPaddedClassesMultiple - 1) / kPaddedClassesMultiple * kPaddedClassesMultiple;
    std::vector<std::string> open = {product.outputs[0]};
    while (!open.empty()) {
      const std::string value = std::move(open.back());
      open.pop_back();
      if (!scores.wide.insert(value).second) continue;
      if (IsOutput(value) || ShapeOf(value).back() != scores.classes) return std::nullopt;
      const auto readers = readers_.find(value);
      if (readers == readers_.end()) continue;
      for (const size_t reader : readers->second) {
        if (!Follow(reader, value, &scores, &open)) return std::nullopt;
      }
    }
    for (const size_t sum : scores.sums) {
      for (const std::string& input : graph_.nodes[sum].inputs) {
        if (scores.wide.count(input) == 0) return std::nullopt;
      }
    }
    return scores.losses.empty() ? std::nullopt : std::optional<Scores>(std::move(scores));
  }

  // Whether node `at`, which reads `value`, can do with more columns of it; those of its results that get more as well
  // go to `open`.
  bool Follow(size_t at, const std::string& value, Scores* scores, std::vector<std::string>* open) const {
    const Node& node = graph_.nodes[at];
    switch (node.op) {
      case OpType::kReshape:
        open->push_back(node.outputs[0]);
        return true;
      case OpType::kAdd:  // the gradients of two losses
        if (ShapeOf(node.inputs[0]) != ShapeOf(node.inputs[1])) return false;
        scores->sums.insert(at);
        open->push_back(node.outputs[0]);
        return true;
      case OpType::kSoftmaxCrossEntropyLoss:
      case OpType::kSoftmaxCrossEntropyLossGrad:
        return FollowLoss(at, value, scores, open);
      case OpType::kReduceSum: {
        const auto& sum = std::get<ReduceAttributes>(node.attributes);
        if (ShapeOf(value).size() != 2 || sum.axes != std::vector<int64_t>{0}) return false;
        return scores->cut.emplace(at, sum.keep_dims ? 1 : 0).second;
      }
      default:
        return FollowProduct(at, value, scores);
    }
  }

  bool FollowLoss(size_t at, const std::string& value, Scores* scores, std::vector<std::string>* open) const {
    const Node& node = graph_.nodes[at];
    const bool gradient = node.op == OpType::kSoftmaxCrossEntropyLossGrad;
    const size_t read = gradient ? 1 : 0;
    const auto& ignored = std::get<CrossEntropyAttributes>(node.attributes).ignore_index;
    const bool weighted = Has(node, read + 2);
    const bool log_prob = gradient ? !Has(node, 4) : node.outputs.size() > 1 && !node.outputs[1].empty();
    if (node.inputs[read] != value || ShapeOf(value).size() != 2 || weighted || log_prob) return false;
    if (ignored.has_value() && *ignored >= scores->classes) return false;
    scores->losses.insert(at);
    if (gradient) open->push_back(node.outputs[0]);
    return true;
  }

  bool FollowProduct(size_t at, const std::string& value, Scores* scores) const {
    const Node& node = graph_.nodes[at];
    const std::optional<GemmAttributes> form = FormOf(node, graph_);
    if (!form.has_value() || at == scores->product || node.inputs[0] == node.inputs[1]) return false;
    const size_t operand = node.inputs[0] == value ? 0 : 1;
    if (node.inputs[operand] != value || (Has(node, 2) && node.inputs[2] == value)) return false;
    const bool transposed = operand == 0 ? form->trans_a : form->trans_b;
    // Its second dimension is the inner one of a left operand, and the outer one of a right operand.
    if ((operand == 0) != transposed) return SumsOverClasses(at, 1 - operand, *form, scores);
    if (Has(node, 2)) return false;
    return scores->cut.emplace(at, operand == 0 ? 0 : 1).second;
  }

  // The other operand has to be the weights, read along the same axis.
  bool SumsOverClasses(size_t at, size_t weights, const GemmAttributes& form, Scores* scores) const {
    const Node& node = graph_.nodes[at];
    const Node& product = graph_.nodes[scores->product];
    const bool transposed = weights == 0 ? form.trans_a : form.trans_b;
    const int64_t axis = (weights == 0) != transposed ? 1 : 0;
    if (node.inputs[weights] != product.inputs[1] || axis != ClassAxis(*scores)) return false;
    return scores->by_weights.emplace(at, weights).second;
  }

  // Along which axis of the weights the classes lie.
  int64_t ClassAxis(const Scores& scores) const {
    return FormOf(graph_.nodes[scores.product], graph_)->trans_b ? 0 : 1;
  }

  std::string Named(const Scores& scores, absl::string_view what) const {
    return FreshName(graph_, absl::StrCat(graph_.nodes[scores.product].name, ".padded.", what));
  }

  // `value` with `axis` filled up to the padded number of classes, in front of the product.
  std::string Filled(const std::string& value, size_t axis, double with, absl::string_view what, Scores* scores) {
    const ValueInfo& from = graph_.values.at(value);
    std::string name = Named(*scores, what);
    PadAttributes pad{.pads = std::vector<int64_t>(2 * from.shape.size(), 0), .value = with};
    pad.pads[from.shape.size() + axis] = scores->padded - scores->classes;
    ValueInfo to = from;
    to.shape[axis] = scores->padded;
    graph_.values[name] = std::move(to);
    scores->in_front[scores->product].push_back({name, OpType::kPad, {value}, {name}, std::move(pad)});
    return name;
  }

  // What is added to the scores.
  std::string Bias(Scores* scores) {
    const Node& product = graph_.nodes[scores->product];
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    if (Has(product, 2)) return Filled(product.inputs[2], 0, kNever, "bias", scores);
    Tensor bias = *Tensor::Create(DType::kBF16, {scores->padded});
    auto* const to = reinterpret_cast<Bf16*>(bias.data());
    for (int64_t i = 0; i < scores->padded; ++i) to[i] = Bf16(i < scores->classes ? 0.0f : kNever);
    std::string name = Named(*scores, "bias");
    AppendConstant(&graph_, name, std::move(bias));
    return name;
  }

  std::string Number(int64_t number, DType dtype, absl::string_view what, const Scores& scores) {
    std::string name = Named(scores, what);
    Tensor value = dtype == DType::kI32 ? Tensor::Of<int32_t>({}, {static_cast<int32_t>(number)})
                                        : Tensor::Of<int64_t>({}, {number});
    AppendConstant(&graph_, name, std::move(value));
    return name;
  }

  // The labels, where one that is no class is beyond the padded ones, too; the `number`th that the losses take, from 0.
  std::string Labels(const std::string& labels, size_t number, size_t before, Scores* scores) {
    const std::string of = number == 0 ? "" : absl::StrCat(".", number);
    const ValueInfo info = graph_.values.at(labels);
    const std::string least = Number(scores->classes, info.dtype, "classes", *scores);
    const std::string none = Number(scores->padded, info.dtype, "no_class", *scores);
    const std::string known = Named(*scores, absl::StrCat("known", of));
    graph_.values[known] = {DType::kBool, info.shape};
    const std::string kept = Named(*scores, absl::StrCat("labels", of));
    graph_.values[kept] = info;
    std::vector<Node>& nodes = scores->in_front[before];
    nodes.push_back({known, OpType::kLess, {labels, least}, {known}, NoAttributes{}});
    nodes.push_back({kept, OpType::kWhere, {known, labels, none}, {kept}, NoAttributes{}});
    return kept;
  }

  // Node `at` writes more than is asked for.
  void Cut(size_t at, int64_t axis, Scores* scores) {
    Node& node = graph_.nodes[at];
    const std::string asked = node.outputs[0];
    const std::string all = FreshName(graph_, absl::StrCat(asked, ".padded"));
    ValueInfo info = graph_.values.at(asked);
    info.shape[static_cast<size_t>(axis)] = scores->padded;
    graph_.values[all] = std::move(info);
    node.outputs[0] = all;
    SliceAttributes slice{.starts = {0}, .ends = {scores->classes}, .axes = {axis}};
    scores->right_behind[at].push_back({all, OpType::kSlice, {all}, {asked}, std::move(slice)});
  }

  void PadProduct(Scores* scores) {
    GemmAttributes form = *FormOf(graph_.nodes[scores->product], graph_);
    form.beta = 1;
    const auto axis = static_cast<size_t>(ClassAxis(*scores));
    const std::string weights = Filled(graph_.nodes[scores->product].inputs[1], axis, 0.0, "weights", scores);
    const std::string bias = Bias(scores);
    Node& product = graph_.nodes[scores->product];
    product.op = OpType::kGemm;
    product.attributes = form;
    product.inputs = {product.inputs[0], weights, bias};
    for (const auto& [at, operand] : scores->by_weights) graph_.nodes[at].inputs[operand] = weights;
  }

  void Pad(Scores scores) {
    PadProduct(&scores);
    std::map<std::string, std::string> kept;  // labels by the values they come from
    for (const size_t at : scores.losses) {
      std::string& labels =
          graph_.nodes[at].inputs[graph_.nodes[at].op == OpType::kSoftmaxCrossEntropyLossGrad ? 2 : 1];
      if (kept.count(labels) == 0) kept.emplace(labels, Labels(labels, kept.size(), at, &scores));
      labels = kept[labels];
    }
    for (const std::string& value : scores.wide) graph_.values.at(value).shape.back() = scores.padded;
    for (const auto& [at, axis] : scores.cut) Cut(at, axis, &scores);
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (node.op == OpType::kReshape && scores.wide.count(node.outputs[0]) > 0) {
        node.attributes = ReshapeAttributes{ShapeOf(node.outputs[0]), true};
      }
      std::vector<Node>& front = scores.in_front[i];
      nodes.insert(nodes.end(), std::make_move_iterator(front.begin()), std::make_move_iterator(front.end()));
      nodes.push_back(std::move(node));
      std::vector<Node>& behind = scores.right_behind[i];
      nodes.insert(nodes.end(), std::make_move_iterator(behind.begin()), std::make_move_iterator(behind.end()));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  std::map<std::string, std::set<size_t>> readers_;
};

}  // namespace

int PadClasses(Graph* graph) { return Padder(graph).Run(); }

}  // namespace lockstep::worker
