#include "common/graph/passes/samples_apart.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "common/graph/ops/elementwise_ops.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep {
namespace {

struct NoSample {};     // the value is the same for any samples
struct SamplesMeet {};  // or nothing is known of it

using Place = std::variant<NoSample, SampleAxis, SamplesMeet>;

// Beside those of IsElementwise.
constexpr OpType kAlsoBroadcast[] = {OpType::kIdentity, OpType::kEqual,       OpType::kGreater, OpType::kGreaterOrEqual,
                                     OpType::kLess,     OpType::kLessOrEqual, OpType::kAnd,     OpType::kOr,
                                     OpType::kXor,      OpType::kNot,         OpType::kIsNaN,   OpType::kIsInf,
                                     OpType::kConcat};

// Of data that counts samples first, with weights that have none. Evaluations have no BatchNormalization in training.
constexpr OpType kLayers[] = {OpType::kConv,
                              OpType::kConvTranspose,
                              OpType::kMaxPool,
                              OpType::kAveragePool,
                              OpType::kGlobalAveragePool,
                              OpType::kGlobalMaxPool,
                              OpType::kDepthToSpace,
                              OpType::kSpaceToDepth,
                              OpType::kBatchNormalization,
                              OpType::kGroupNormalization,
                              OpType::kInstanceNormalization};

constexpr OpType kProducts[] = {OpType::kGemm, OpType::kMatMul, OpType::kBatchMatMul};
constexpr OpType kGathers[] = {OpType::kGather, OpType::kGatherElements, OpType::kGatherND};
constexpr OpType kClassLosses[] = {OpType::kSoftmaxCrossEntropyLoss, OpType::kNegativeLogLikelihoodLoss,
                                   OpType::kLossWeights};

bool IsOneOf(absl::Span<const OpType> ops, OpType op) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

int64_t FromFront(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

bool NamesAxis(const std::vector<int64_t>& axes, int64_t axis, int64_t rank) {
  return std::any_of(axes.begin(), axes.end(), [&](int64_t named) { return FromFront(named, rank) == axis; });
}

// Follows the samples through the nodes of a graph.
class Follower {
 public:
  Follower(const Graph& graph, int64_t batch) : graph_(graph), batch_(batch) {
    for (const GraphInput& input : graph.inputs) {
      if (input.name == kRandomInput) continue;
      const Shape& shape = ShapeOf(input.name);
      const bool counts = !shape.empty() && shape[0] % batch == 0;
      places_[input.name] = counts ? Place(SampleAxis{.inner = shape[0] / batch}) : SamplesMeet();
    }
    for (const Node& node : graph.nodes) {
      const Place place = After(node);
      for (const std::string& output : node.outputs) {
        if (!output.empty()) places_[output] = place;
      }
    }
  }

  bool AreApart() const {
    bool counts = false;
    for (const Node& node : graph_.nodes) {
      if (node.op != OpType::kMaskedSum && node.op != OpType::kCountCorrect) continue;
      counts = true;
      if (std::holds_alternative<SamplesMeet>(CommonFirst(node))) return false;
    }
    if (counts) return true;
    return std::all_of(graph_.outputs.begin(), graph_.outputs.end(),
                       [&](const std::string& output) { return CountsRows(output); });
  }

  std::map<std::string, SampleAxis> Found() const {
    std::map<std::string, SampleAxis> found;
    for (const auto& [value, place] : places_) {
      if (const auto* const axis = std::get_if<SampleAxis>(&place)) found[value] = *axis;
    }
    return found;
  }

  bool CountsRows(const std::string& value) const {
    const auto* const place = std::get_if<SampleAxis>(&PlaceOf(value));
    return place != nullptr && place->axis == 0 && place->outer == 1;
  }

 private:
  const Shape& ShapeOf(const std::string& value) const { return graph_.values.at(value).shape; }
  int64_t RankOf(const std::string& value) const { return static_cast<int64_t>(ShapeOf(value).size()); }

  // Variables, constants and random numbers have no samples.
  const Place& PlaceOf(const std::string& value) const {
    static const Place& none = *new Place(NoSample());
    const auto found = places_.find(value);
    return found == places_.end() ? none : found->second;
  }

  // The place that all inputs with samples have in common, if that is their first dimension.
  Place CommonFirst(const Node& node) const {
    Place common = NoSample();
    for (const std::string& input : node.inputs) {
      if (std::holds_alternative<NoSample>(PlaceOf(input))) continue;
      const auto* const place = std::get_if<SampleAxis>(&PlaceOf(input));
      const auto* const others = std::get_if<SampleAxis>(&common);
      if (place == nullptr || place->axis != 0 || (others != nullptr && *others != *place)) return SamplesMeet();
      common = *place;
    }
    return common;
  }

  // What holds after a node, for all of its outputs.
  Place After(const Node& node) const {
    bool any = false;
    for (const std::string& input : node.inputs) {
      if (std::holds_alternative<SamplesMeet>(PlaceOf(input))) return SamplesMeet();
      any = any || std::holds_alternative<SampleAxis>(PlaceOf(input));
    }
    const bool draws = node.op == OpType::kUniformLike || node.op == OpType::kNormalLike;
    if (!any || draws) return NoSample();
    if (Broadcasts(node)) return AfterBroadcast(node);
    if (IsOneOf(kProducts, node.op)) return AfterProduct(node);
    if (IsOneOf(kGathers, node.op)) return AfterGather(node);
    if (TakesSamplesFirst(node)) return CommonFirst(node);
    const auto* const place = std::get_if<SampleAxis>(&PlaceOf(node.inputs[0]));
    const bool alone = place != nullptr && std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](auto& input) {
                         return std::holds_alternative<NoSample>(PlaceOf(input));
                       });
    if (!alone) return SamplesMeet();
    if (IsOneOf(kLayers, node.op)) return place->axis == 0 ? Place(*place) : SamplesMeet();
    return AfterOne(node, *place);
  }

  static bool Broadcasts(const Node& node) {
    if (node.op == OpType::kPointwiseLoss) {
      return std::get<PointwiseLossAttributes>(node.attributes).reduction == Reduction::kNone;
    }
    return IsElementwise(node.op) || IsOneOf(kAlsoBroadcast, node.op);
  }

  // Of operands that broadcast, or are joined: all that have samples count them in the same dimension from the end.
  Place AfterBroadcast(const Node& node) const {
    const int64_t rank = RankOf(node.outputs[0]);
    std::optional<SampleAxis> joint;
    int64_t count = 0;
    for (const std::string& input : node.inputs) {
      const auto* const place = std::get_if<SampleAxis>(&PlaceOf(input));
      if (place == nullptr) continue;
      ++count;
      SampleAxis aligned = *place;
      aligned.axis += rank - RankOf(input);
      if (joint.has_value() && *joint != aligned) return SamplesMeet();
      joint = aligned;
    }
    if (node.op == OpType::kConcat) {
      const bool along = FromFront(std::get<ConcatAttributes>(node.attributes).axis, rank) == joint->axis;
      if (along && count < static_cast<int64_t>(node.inputs.size())) return SamplesMeet();
      if (along) joint->outer *= count;  // all samples of one operand, then all of the next
    }
    return *joint;
  }

  // Whether the operands of the op all count samples first, or have none. Class weights, the last operand of losses,
  // count classes.
  bool TakesSamplesFirst(const Node& node) const {
    if (node.op == OpType::kAttention) return true;
    if (!IsOneOf(kClassLosses, node.op) ||
        std::get<CrossEntropyAttributes>(node.attributes).reduction != Reduction::kNone) {
      return false;
    }
    const size_t weights = node.op == OpType::kLossWeights ? 1 : 2;
    return node.inputs.size() <= weights || std::holds_alternative<NoSample>(PlaceOf(node.inputs[weights]));
  }

  Place AfterProduct(const Node& node) const;
  Place AfterGather(const Node& node) const;
  Place AfterReshape(const Node& node, const SampleAxis& place) const;
  Place AfterReduce(const Node& node, const SampleAxis& place) const;
  Place AfterOne(const Node& node, SampleAxis place) const;

  const Graph& graph_;
  const int64_t batch_;
  std::map<std::string, Place> places_;  // of values that depend on samples
};

// A matrix product: what is summed over cannot be the samples, and of two operands that have them, both have them in
// the same leading dimension.
Place Follower::AfterProduct(const Node& node) const {
  bool transposed[2] = {};
  if (const auto* const gemm = std::get_if<GemmAttributes>(&node.attributes)) {
    transposed[0] = gemm->trans_a;
    transposed[1] = gemm->trans_b;
  } else if (const auto* const product = std::get_if<BatchMatMulAttributes>(&node.attributes)) {
    transposed[0] = product->trans_a;
    transposed[1] = product->trans_b;
  }
  const int64_t rank = RankOf(node.outputs[0]);
  const int64_t rows = RankOf(node.inputs[0]) == 1 ? 0 : 1;  // vectors have none, or no columns
  const int64_t columns = RankOf(node.inputs[1]) == 1 ? 0 : 1;
  const int64_t leading = rank - rows - columns;
  std::optional<SampleAxis> joint;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto* const place = std::get_if<SampleAxis>(&PlaceOf(node.inputs[i]));
    if (place == nullptr) continue;
    const int64_t own = RankOf(node.inputs[i]);
    SampleAxis moved = *place;
    if (i == 2) {  // is added to the product
      moved.axis += rank - own;
    } else if (own == 1) {
      return SamplesMeet();
    } else if (place->axis < own - 2) {
      moved.axis += leading - (own - 2);
    } else {
      const int64_t kept = (i == 0) == transposed[i] ? own - 1 : own - 2;
      if (place->axis != kept) return SamplesMeet();
      moved.axis = i == 0 ? leading : leading + rows;
    }
    if (joint.has_value() && *joint != moved) return SamplesMeet();
    joint = moved;
  }
  return *joint;
}

Place Follower::AfterGather(const Node& node) const {
  const auto* const data = std::get_if<SampleAxis>(&PlaceOf(node.inputs[0]));
  const auto* const indices = std::get_if<SampleAxis>(&PlaceOf(node.inputs[1]));
  const int64_t rank = RankOf(node.inputs[0]), index_rank = RankOf(node.inputs[1]);
  if (node.op == OpType::kGatherND) {
    const int64_t own = std::get<GatherNdAttributes>(node.attributes).batch_dims;
    if (data != nullptr && indices != nullptr) {
      return *data == *indices && data->axis < own ? Place(*data) : SamplesMeet();
    }
    return indices != nullptr && indices->axis < index_rank - 1 ? Place(*indices) : SamplesMeet();
  }
  const int64_t axis = FromFront(std::get<GatherAttributes>(node.attributes).axis, rank);
  if (data != nullptr && data->axis == axis) return SamplesMeet();
  if (node.op == OpType::kGatherElements) {
    const SampleAxis& place = data != nullptr ? *data : *indices;
    const bool alike = data == nullptr || indices == nullptr || *data == *indices;
    const size_t along = static_cast<size_t>(place.axis);
    const bool whole = ShapeOf(node.inputs[0])[along] == ShapeOf(node.inputs[1])[along];
    return alike && whole ? Place(place) : SamplesMeet();
  }
  if (data != nullptr && indices != nullptr) return SamplesMeet();
  SampleAxis place = data != nullptr ? *data : *indices;
  if (data == nullptr) {
    place.axis += axis;
  } else if (place.axis > axis) {
    place.axis += index_rank - 1;
  }
  return place;
}

// The elements keep their order, so the samples lie where as many elements stand in front of a sample's neighbour.
Place Follower::AfterReshape(const Node& node, const SampleAxis& place) const {
  const Shape& to = ShapeOf(node.outputs[0]);
  const Shape& from = ShapeOf(node.inputs[0]);
  const int64_t outer = std::accumulate(from.begin(), from.begin() + place.axis, place.outer, std::multiplies<>());
  int64_t before = 1;
  for (size_t axis = 0; axis < to.size() && before > 0 && outer % before == 0; ++axis) {
    const int64_t block = outer / before * batch_;
    if (to[axis] > 0 && block > 0 && to[axis] % block == 0) {
      return SampleAxis{static_cast<int64_t>(axis), outer / before, to[axis] / block};
    }
    before *= to[axis];
  }
  return SamplesMeet();
}

Place Follower::AfterReduce(const Node& node, const SampleAxis& place) const {
  const int64_t rank = RankOf(node.inputs[0]);
  std::vector<int64_t> axes;
  bool keeps = true;
  if (const auto* const arg = std::get_if<ArgAttributes>(&node.attributes)) {
    axes = {arg->axis};
    keeps = arg->keep_dims;
  } else {
    const auto& reduce = std::get<ReduceAttributes>(node.attributes);
    if (reduce.axes.empty()) return reduce.noop_with_empty_axes ? Place(place) : SamplesMeet();
    axes = reduce.axes;
    keeps = reduce.keep_dims;
  }
  if (NamesAxis(axes, place.axis, rank)) return SamplesMeet();
  SampleAxis after = place;
  for (int64_t axis = 0; axis < place.axis && !keeps; ++axis) after.axis -= NamesAxis(axes, axis, rank) ? 1 : 0;
  return after;
}

// The axis of the first operand along which the op compares, sums or cuts elements; nullopt for other ops.
std::optional<int64_t> WorksAlong(const Node& node) {
  switch (node.op) {
    case OpType::kSoftmax:
    case OpType::kLogSoftmax:
      return std::get<SoftmaxAttributes>(node.attributes).axis;
    case OpType::kLpNormalization:
      return std::get<LpNormAttributes>(node.attributes).axis;
    case OpType::kCumSum:
      return std::get<CumSumAttributes>(node.attributes).axis;
    case OpType::kTopK:
      return std::get<TopKAttributes>(node.attributes).axis;
    case OpType::kReverseSequence:
      return std::get<ReverseSequenceAttributes>(node.attributes).time_axis;
    default:
      return std::nullopt;
  }
}

// Of an op whose first operand alone has samples.
Place Follower::AfterOne(const Node& node, SampleAxis place) const {
  const int64_t rank = RankOf(node.inputs[0]);
  const Shape& from = ShapeOf(node.inputs[0]);
  const size_t along = static_cast<size_t>(place.axis);
  if (std::holds_alternative<ReduceAttributes>(node.attributes) ||
      std::holds_alternative<ArgAttributes>(node.attributes)) {
    return AfterReduce(node, place);
  }
  if (const std::optional<int64_t> axis = WorksAlong(node)) {
    return FromFront(*axis, rank) == place.axis ? Place(SamplesMeet()) : place;
  }
  switch (node.op) {
    case OpType::kFlatten:
    case OpType::kReshape:
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      return AfterReshape(node, place);
    case OpType::kExpand:
      place.axis += RankOf(node.outputs[0]) - rank;
      return place;
    case OpType::kSplit: {
      if (FromFront(std::get<SplitAttributes>(node.attributes).axis, rank) != place.axis) return place;
      const auto parts = static_cast<int64_t>(node.outputs.size());
      const bool equal = std::all_of(node.outputs.begin(), node.outputs.end(), [&](const std::string& output) {
        return output.empty() || ShapeOf(output)[along] * parts == from[along];
      });
      place.outer /= parts;
      return equal && place.outer * parts * place.inner * batch_ == from[along] ? Place(place) : SamplesMeet();
    }
    case OpType::kTile:
      place.outer *= std::get<TileAttributes>(node.attributes).repeats[along];
      return place;
    case OpType::kTranspose: {
      const auto& transpose = std::get<TransposeAttributes>(node.attributes);
      for (size_t i = 0; i < from.size(); ++i) {
        if (transpose.Source(i, from.size()) == along) place.axis = static_cast<int64_t>(i);
      }
      return place;
    }
    case OpType::kLayerNormalization:
    case OpType::kRmsNormalization: {
      const int64_t first = FromFront(std::get<LayerNormAttributes>(node.attributes).axis, rank);
      return place.axis < first ? Place(place) : SamplesMeet();
    }
    case OpType::kTrilu:
      return place.axis < rank - 2 ? Place(place) : SamplesMeet();
    case OpType::kOneHot: {
      const int64_t added = FromFront(std::get<OneHotAttributes>(node.attributes).axis, rank + 1);
      if (added <= place.axis) ++place.axis;
      return place;
    }
    case OpType::kSlice: {
      const SliceRange range = std::get<SliceAttributes>(node.attributes).RangeOf(place.axis, rank, from[along]);
      return range.step == 1 && range.count == from[along] ? Place(place) : SamplesMeet();
    }
    case OpType::kPad: {
      const PadRange range = std::get<PadAttributes>(node.attributes).RangeOf(place.axis, rank);
      return range.before == 0 && range.behind == 0 ? Place(place) : SamplesMeet();
    }
    case OpType::kResize:
      return ShapeOf(node.outputs[0])[along] == from[along] ? Place(place) : SamplesMeet();
    default:
      return SamplesMeet();
  }
}

}  // namespace

bool SamplesAreApart(const Graph& graph, int64_t batch) { return batch <= 1 || Follower(graph, batch).AreApart(); }

std::map<std::string, SampleAxis> FindSamples(const Graph& graph, int64_t batch) {
  return Follower(graph, batch).Found();
}

bool RowsFollowSamples(const Graph& graph, const std::string& value, int64_t batch) {
  return batch <= 1 || Follower(graph, batch).CountsRows(value);
}

}  // namespace lockstep
