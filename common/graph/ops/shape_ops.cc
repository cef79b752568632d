#include "common/graph/ops/shape_ops.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseFlatten(const RawAttributes& raw) {
  FlattenAttributes flatten;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Int("axis", &flatten.axis).Finish());
  return OpAttributes(flatten);
}

RawAttributes FormatFlatten(const OpAttributes& attributes) {
  return {{"axis", std::get<FlattenAttributes>(attributes).axis}};
}

absl::StatusOr<OpAttributes> ParseReshape(const RawAttributes& raw) {
  ReshapeAttributes reshape;
  LS_RETURN_IF_ERROR(
      AttributeReader(raw).Ints("shape", &reshape.shape).Bool("allowzero", &reshape.allow_zero).Finish());
  return OpAttributes(std::move(reshape));
}

RawAttributes FormatReshape(const OpAttributes& attributes) {
  const auto& reshape = std::get<ReshapeAttributes>(attributes);
  return {{"shape", reshape.shape}, {"allowzero", int64_t{reshape.allow_zero}}};
}

absl::StatusOr<OpAttributes> ParseSqueeze(const RawAttributes& raw) {
  SqueezeAttributes squeeze;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Ints("axes", &squeeze.axes).Finish());
  return OpAttributes(std::move(squeeze));
}

RawAttributes FormatSqueeze(const OpAttributes& attributes) {
  return {{"axes", std::get<SqueezeAttributes>(attributes).axes}};
}

absl::StatusOr<OpAttributes> ParseExpand(const RawAttributes& raw) {
  ExpandAttributes expand;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Ints("shape", &expand.shape).Finish());
  return OpAttributes(std::move(expand));
}

RawAttributes FormatExpand(const OpAttributes& attributes) {
  return {{"shape", std::get<ExpandAttributes>(attributes).shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferFlatten(const Node& node, InputInfos inputs) {
  const Shape& from = inputs[0]->shape;
  const int64_t rank = static_cast<int64_t>(from.size());
  int64_t axis = std::get<FlattenAttributes>(node.attributes).axis;
  if (axis < -rank || axis > rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is outside of a tensor of rank ", rank));
  }
  if (axis < 0) axis += rank;
  return std::vector<ValueInfo>{{inputs[0]->dtype,
                                 {NumElements({from.data(), static_cast<size_t>(axis)}),
                                  NumElements({from.data() + axis, static_cast<size_t>(rank - axis)})}}};
}

absl::StatusOr<std::vector<ValueInfo>> InferReshape(const Node& node, InputInfos inputs) {
  const auto& reshape = std::get<ReshapeAttributes>(node.attributes);
  const Shape& from = inputs[0]->shape;
  Shape shape = reshape.shape;
  int remainder = -1;
  int64_t known = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !reshape.allow_zero) {
      if (i >= from.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("shape ", ShapeString(reshape.shape), " copies dimension ", i, " of ", ShapeString(from)));
      }
      shape[i] = from[i];
    }
    if (shape[i] == -1 && remainder == -1) {
      remainder = static_cast<int>(i);
    } else if (shape[i] < 0 || __builtin_mul_overflow(known, shape[i], &known)) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeString(reshape.shape), " is impossible"));
    }
  }
  const int64_t total = NumElements(from);
  if (remainder >= 0 && known > 0 && total % known == 0) {
    shape[remainder] = total / known;
    known = total;
  }
  if (known != total || (remainder >= 0 && shape[remainder] < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", ShapeString(from), " has ", total, " elements, which do not fit into shape ",
                     ShapeString(reshape.shape), ". If the leading dimension is the batch, write -1 or 0 for it"));
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

// Which of `rank` dimensions are named.
absl::StatusOr<std::vector<bool>> NamedAxes(const std::vector<int64_t>& axes, size_t rank) {
  std::vector<bool> named(rank, false);
  for (const int64_t given : axes) {
    LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(given, static_cast<int64_t>(rank)));
    if (named[axis]) return absl::InvalidArgumentError(absl::StrCat("axis ", given, " is named twice"));
    named[axis] = true;
  }
  return named;
}

absl::StatusOr<std::vector<ValueInfo>> InferSqueeze(const Node& node, InputInfos inputs) {
  const auto& squeeze = std::get<SqueezeAttributes>(node.attributes);
  const Shape& from = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const std::vector<bool> named, NamedAxes(squeeze.axes, from.size()));
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (named[i] && from[i] != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " of input ", ShapeString(from), " is not 1 and cannot be left out"));
    }
    if (squeeze.axes.empty() ? from[i] != 1 : !named[i]) shape.push_back(from[i]);
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferUnsqueeze(const Node& node, InputInfos inputs) {
  const auto& unsqueeze = std::get<SqueezeAttributes>(node.attributes);
  const Shape& from = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const std::vector<bool> named, NamedAxes(unsqueeze.axes, from.size() + unsqueeze.axes.size()));
  Shape shape;
  size_t next = 0;
  for (const bool added : named) shape.push_back(added ? 1 : from[next++]);
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferExpand(const Node& node, InputInfos inputs) {
  const auto& expand = std::get<ExpandAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckedNumElements(expand.shape).status());
  LS_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(inputs[0]->shape, expand.shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::Status ReshapeBack(GradientBuilder& b) {
  b.SetInputGradient(0, b.ReshapeTo("d0", b.OutputGradient(0), b.InputInfo(0).shape));
  return absl::OkStatus();
}

absl::Status ExpandGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.ReduceTo("d0", b.OutputGradient(0), b.InputInfo(0).shape));
  return absl::OkStatus();
}

constexpr OpSchema kShapeFamily[] = {
    {OpType::kFlatten, 1, 1, 1, 1, ParseFlatten, FormatFlatten, InferFlatten, ReshapeBack},
    {OpType::kReshape, 1, 1, 1, 1, ParseReshape, FormatReshape, InferReshape, ReshapeBack},
    {OpType::kSqueeze, 1, 1, 1, 1, ParseSqueeze, FormatSqueeze, InferSqueeze, ReshapeBack},
    {OpType::kUnsqueeze, 1, 1, 1, 1, ParseSqueeze, FormatSqueeze, InferUnsqueeze, ReshapeBack},
    {OpType::kExpand, 1, 1, 1, 1, ParseExpand, FormatExpand, InferExpand, ExpandGradient},
};

}  // namespace

absl::Span<const OpSchema> ShapeFamily() { return kShapeFamily; }

}  // namespace lockstep
