#include "common/graph/passes/fuse_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/attention_source.h"

namespace lockstep {
namespace {

// What is added to hide a key is below this: e to its power is 0 next to any other score.
constexpr double kHidden = -1e30;

enum class MaskKind : uint8_t { kNone, kCausal, kOther };

double ElementOf(const Tensor& tensor, size_t i) {
  return tensor.dtype() == DType::kF32 ? static_cast<double>(tensor.elements<float>()[i])
                                       : tensor.elements<double>()[i];
}

// What a constant that is added to scores [..., queries, keys] hides.
MaskKind KindOf(const Tensor& mask, int64_t queries, int64_t keys) {
  if (mask.dtype() != DType::kF32 && mask.dtype() != DType::kF64) return MaskKind::kOther;
  const auto count = static_cast<size_t>(mask.num_elements());
  bool none = true;
  for (size_t i = 0; i < count && none; ++i) none = ElementOf(mask, i) == 0;
  if (none) return MaskKind::kNone;
  const Shape& shape = mask.shape();
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] != queries || shape[rank - 1] != keys) return MaskKind::kOther;
  for (size_t i = 0; i < count; ++i) {
    const auto key = static_cast<int64_t>(i) % keys;
    const auto query = static_cast<int64_t>(i) / keys % queries;
    const double element = ElementOf(mask, i);
    if (key <= query ? element != 0 : !(element <= kHidden)) return MaskKind::kOther;
  }
  return MaskKind::kCausal;
}

// Where(condition, x, number) or Where(condition, number, x) over scores as a tensor that is added to x.
std::optional<Tensor> AddedByWhere(const GraphIndex& index, const Node& node, size_t scores) {
  const Tensor* condition = index.ConstantOf(node.inputs[0]);
  const auto number = index.NumberOf(node.inputs[3 - scores]);
  if (condition == nullptr || condition->dtype() != DType::kBool || !number || !(*number <= kHidden)) {
    return std::nullopt;
  }
  Tensor added = Tensor::Zeros(DType::kF32, condition->shape());
  for (size_t i = 0; i < static_cast<size_t>(added.num_elements()); ++i) {
    const bool takes_scores = condition->elements<bool>()[i] == (scores == 1);
    if (!takes_scores) added.elements<float>()[i] = static_cast<float>(*number);
  }
  return added;
}

// Whether a node multiplies two stacks of matrices as they are; `across`: the right one transposed.
bool IsProduct(const Node& node, bool* across) {
  *across = false;
  if (node.op != OpType::kBatchMatMul) return node.op == OpType::kMatMul;
  const auto& form = std::get<BatchMatMulAttributes>(node.attributes);
  *across = form.trans_b;
  return !form.trans_a;
}

// Where the dimensions batch, heads, length and size of an operand stand; `across`: the last two exchanged.
std::array<size_t, 4> PlacesOf(bool across) {
  return across ? std::array<size_t, 4>{0, 1, 3, 2} : std::array<size_t, 4>{0, 1, 2, 3};
}

// What stands between a product and its softmax.
struct Scores {
  const Node* product = nullptr;
  double factor = 1.0;
  bool masked = false;
  std::string mask;             // a value that is added
  std::optional<Tensor> added;  // or a tensor
};

class Fuser {
 public:
  explicit Fuser(Graph* graph) : graph_(graph), index_(*graph) {}

  int Run() {
    for (const Node& node : graph_->nodes) {
      if (node.op == OpType::kSoftmax && index_.IsLive(node)) Match(node);
    }
    if (found_.empty()) return 0;
    std::vector<Node> nodes = std::move(graph_->nodes);
    graph_->nodes.clear();
    for (Node& node : nodes) {
      const auto fused = std::find_if(found_.begin(), found_.end(), [&](const Fused& f) { return f.at == node.name; });
      const bool dropped = dropped_.count(node.name) > 0;
      if (fused != found_.end()) {
        for (Node& put : fused->nodes) graph_->nodes.push_back(std::move(put));
      } else if (!dropped) {
        graph_->nodes.push_back(std::move(node));
      }
    }
    return static_cast<int>(found_.size());
  }

 private:
  // The nodes that take the place of the one named `at`.
  struct Fused {
    std::string at;
    std::vector<Node> nodes;
  };

  // Walks from the softmax up to the product; its `product` is null where something else is on the way.
  Scores ReadScores(const Node& softmax) const {
    Scores scores;
    std::string value = softmax.inputs[0];
    const Shape& shape = index_.ShapeOf(value);
    bool scaled = false;
    while (true) {
      const Node* node = index_.Producer(value);
      if (node == nullptr || index_.OnlyReader(value) == nullptr || index_.ShapeOf(value) != shape) return {};
      bool across = false;
      if (IsProduct(*node, &across)) {
        scores.product = node;
        return scores;
      }
      if (!scaled && node->op == OpType::kScale) {
        scores.factor = std::get<ScaleAttributes>(node->attributes).factor;
        scaled = true;
        value = node->inputs[0];
        continue;
      }
      if (!scaled && (node->op == OpType::kMul || node->op == OpType::kDiv)) {
        const bool first = index_.ShapeOf(node->inputs[0]) == shape;
        const auto number = index_.NumberOf(node->inputs[first ? 1 : 0]);
        if (!number || (node->op == OpType::kDiv && (!first || *number == 0))) return {};
        scores.factor = node->op == OpType::kMul ? *number : 1.0 / *number;
        scaled = true;
        value = node->inputs[first ? 0 : 1];
      } else if (!scaled && !scores.masked && ReadMask(*node, shape, &scores, &value)) {
        scores.masked = true;
      } else {
        return {};
      }
    }
  }

  bool ReadMask(const Node& node, const Shape& shape, Scores* scores, std::string* value) const {
    if (node.op == OpType::kWhere) {
      const size_t kept = index_.NumberOf(node.inputs[2]).has_value() ? 1 : 2;
      scores->added = AddedByWhere(index_, node, kept);
      *value = node.inputs[kept];
      return scores->added.has_value();
    }
    if (node.op != OpType::kAdd) return false;
    // The scores are what a product leads to; the mask is what no parameter moves.
    const size_t mask = index_.IsTrained(node.inputs[1]) ? 0 : 1;
    if (index_.IsTrained(node.inputs[mask]) || index_.ShapeOf(node.inputs[1 - mask]) != shape) return false;
    if (index_.ShapeOf(node.inputs[mask]).size() > 4) return false;
    scores->mask = node.inputs[mask];
    *value = node.inputs[1 - mask];
    return true;
  }

  void Match(const Node& softmax) {
    const Shape& shape = index_.ShapeOf(softmax.outputs[0]);
    const int64_t axis = std::get<SoftmaxAttributes>(softmax.attributes).axis;
    if (shape.size() != 4 || (axis != -1 && axis != 3)) return;
    const Scores scores = ReadScores(softmax);
    if (scores.product == nullptr) return;
    AttentionAttributes attributes;
    const Node* after = index_.OnlyReader(softmax.outputs[0]);
    std::string weights = softmax.outputs[0];
    std::string random;
    if (after != nullptr && after->op == OpType::kDropoutTraining) {
      const auto& dropout = std::get<DropoutAttributes>(after->attributes);
      if (IsRead(after->outputs[1])) return;
      attributes.ratio = dropout.ratio;
      attributes.stream = dropout.stream;
      random = after->inputs[1];
      weights = after->outputs[0];
      after = index_.OnlyReader(weights);
    }
    bool across = false;
    if (after == nullptr || !IsProduct(*after, &across) || after->inputs[0] != weights) return;
    attributes.scale = scores.factor;
    Replace(*scores.product, *after, scores, attributes, random);
  }

  bool IsRead(const std::string& value) const {
    const auto reads = [&](const Node& node) {
      return index_.IsLive(node) && std::count(node.inputs.begin(), node.inputs.end(), value) > 0;
    };
    return !value.empty() && (std::count(graph_->outputs.begin(), graph_->outputs.end(), value) > 0 ||
                              std::any_of(graph_->nodes.begin(), graph_->nodes.end(), reads));
  }

  struct Sources {
    AttentionSource q, k, v;
  };

  std::optional<Sources> FindSources(const Node& product, const Node& mix, bool repeated) const {
    const auto q = FindAttentionSource(index_, product.inputs[0], {0, 1, 2, 3}, false);
    bool k_down = false;
    bool v_across = false;
    if (!IsProduct(product, &k_down) || !IsProduct(mix, &v_across)) return std::nullopt;
    const auto k = FindAttentionSource(index_, product.inputs[1], PlacesOf(!k_down), repeated);
    const auto v = FindAttentionSource(index_, mix.inputs[1], PlacesOf(v_across), repeated);
    if (!q || !k || !v || v->factor != 1.0) return std::nullopt;
    const auto heads = [&](const AttentionSource& s) { return index_.ShapeOf(s.value)[s.rows ? 2 : 1]; };
    if (heads(*k) != heads(*v)) return repeated ? FindSources(product, mix, false) : std::nullopt;
    return Sources{*q, *k, *v};
  }

  // The value that Q, K and V are parts of, in this order, where nothing else reads any of them: [..., all heads *
  // size].
  const Node* SplitOf(const Sources& sources) const {
    const Node* split = nullptr;
    int part = 0;
    int64_t width = 0;
    for (const AttentionSource& source : {sources.q, sources.k, sources.v}) {
      const Node* reshape = index_.Producer(source.value);
      if (!source.rows || reshape == nullptr || reshape->op != OpType::kReshape) return nullptr;
      if (index_.OnlyReader(source.value) == nullptr || index_.OnlyReader(reshape->inputs[0]) == nullptr)
        return nullptr;
      const Node* producer = index_.Producer(reshape->inputs[0]);
      if (producer == nullptr || producer->op != OpType::kSplit || (split != nullptr && split != producer))
        return nullptr;
      split = producer;
      if (split->outputs.size() != 3 || split->outputs[static_cast<size_t>(part++)] != reshape->inputs[0])
        return nullptr;
      const Shape& heads = index_.ShapeOf(source.value);
      if (heads[3] != index_.ShapeOf(sources.q.value)[3]) return nullptr;
      if (index_.ShapeOf(reshape->inputs[0]).back() != heads[2] * heads[3]) return nullptr;
      width += heads[2] * heads[3];
    }
    const Shape& whole = index_.ShapeOf(split->inputs[0]);
    return whole.back() == width ? split : nullptr;
  }

  std::string Reshaped(Fused* fused, const std::string& name, const std::string& value, const Shape& shape) {
    if (index_.ShapeOf(value) == shape) return value;
    graph_->values[name] = {graph_->values.at(value).dtype, shape};
    fused->nodes.push_back({name, OpType::kReshape, {value}, {name}, ReshapeAttributes{shape, true}});
    return name;
  }

  // The mask as an input of the op; empty where the attributes say it all.
  std::string MaskInput(const Scores& scores, const Shape& pairs, const std::string& name, Fused* fused,
                        AttentionAttributes* attributes) {
    if (!scores.masked) return "";
    const Tensor* constant = scores.added ? &*scores.added : index_.ConstantOf(scores.mask);
    if (constant != nullptr) {
      const MaskKind kind = KindOf(*constant, pairs[2], pairs[3]);
      attributes->causal = kind == MaskKind::kCausal;
      if (kind != MaskKind::kOther) return "";
    }
    std::string mask = scores.mask;
    if (scores.added) {
      mask = absl::StrCat(name, ".added");
      AppendConstant(graph_, mask, scores.added->Clone());
    }
    Shape shape = graph_->values.at(mask).shape;
    shape.insert(shape.begin(), 4 - shape.size(), 1);
    return Reshaped(fused, absl::StrCat(name, ".mask"), mask, shape);
  }

  bool Fits(const std::vector<std::string>& inputs, const AttentionAttributes& attributes) const {
    std::vector<const ValueInfo*> infos;
    for (const std::string& input : inputs) infos.push_back(input.empty() ? nullptr : &graph_->values.at(input));
    return InferNode({"attention", OpType::kAttention, inputs, {"y"}, attributes}, infos).ok();
  }

  // Puts attention where `mix`, the product of the weights and V, stands.
  void Replace(const Node& product, const Node& mix, const Scores& scores, AttentionAttributes attributes,
               const std::string& random) {
    const Shape pairs = index_.ShapeOf(product.outputs[0]);
    const auto sources = FindSources(product, mix, true);
    if (!sources || pairs != Shape{index_.ShapeOf(sources->q.value)[0], pairs[1], pairs[2], pairs[3]}) return;
    attributes.scale *= sources->q.factor * sources->k.factor;
    attributes.q_rows = sources->q.rows;
    attributes.k_rows = sources->k.rows;
    attributes.v_rows = sources->v.rows;
    Fused fused{.at = mix.name, .nodes = {}};
    const std::string name = absl::StrCat("lockstep.attention.", mix.name);
    std::vector<std::string> inputs = {sources->q.value, sources->k.value, sources->v.value};
    if (const Node* split = SplitOf(*sources); split != nullptr) {
      const Shape& q = index_.ShapeOf(sources->q.value);
      attributes.packed_heads = q[2];
      const Shape whole = {q[0], q[1], q[2] + 2 * index_.ShapeOf(sources->k.value)[2], q[3]};
      inputs = {Reshaped(&fused, absl::StrCat(name, ".qkv"), split->inputs[0], whole), "", ""};
    }
    inputs.push_back(MaskInput(scores, pairs, name, &fused, &attributes));
    inputs.push_back(random);
    while (inputs.size() > 3 && inputs.back().empty()) inputs.pop_back();
    std::string output = mix.outputs[0];
    const Node* gather = index_.OnlyReader(output);
    if (gather != nullptr && gather->op == OpType::kTranspose &&
        std::get<TransposeAttributes>(gather->attributes).perm == std::vector<int64_t>{0, 2, 1, 3}) {
      attributes.y_rows = true;
      output = gather->outputs[0];
    }
    if (!Fits(inputs, attributes)) return;
    if (attributes.y_rows) dropped_.insert(gather->name);
    const std::string statistics = absl::StrCat(name, ".statistics");
    const ValueInfo& q = graph_->values.at(product.outputs[0]);
    graph_->values[statistics] = {q.dtype, {pairs[0], pairs[1], pairs[2], 2}};
    fused.nodes.push_back({mix.name, OpType::kAttention, std::move(inputs), {output, statistics}, attributes});
    found_.push_back(std::move(fused));
  }

  Graph* graph_;
  const GraphIndex index_;
  std::vector<Fused> found_;
  std::set<std::string> dropped_;
};

}  // namespace

int FuseAttention(Graph* graph) { return Fuser(graph).Run(); }

}  // namespace lockstep
