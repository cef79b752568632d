#include "common/graph/ops/gather.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/indices.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseGather(const RawAttributes& raw) {
  GatherAttributes gather;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Int("axis", &gather.axis).Ints("input_shape", &gather.input_shape).Finish());
  return OpAttributes(std::move(gather));
}

RawAttributes FormatGather(const OpAttributes& attributes) {
  const auto& gather = std::get<GatherAttributes>(attributes);
  RawAttributes raw = {{"axis", gather.axis}};
  if (!gather.input_shape.empty()) raw.emplace("input_shape", gather.input_shape);
  return raw;
}

absl::StatusOr<OpAttributes> ParseGatherNd(const RawAttributes& raw) {
  GatherNdAttributes gather;
  LS_RETURN_IF_ERROR(
      AttributeReader(raw).Int("batch_dims", &gather.batch_dims).Ints("input_shape", &gather.input_shape).Finish());
  return OpAttributes(std::move(gather));
}

RawAttributes FormatGatherNd(const OpAttributes& attributes) {
  const auto& gather = std::get<GatherNdAttributes>(attributes);
  RawAttributes raw = {{"batch_dims", gather.batch_dims}};
  if (!gather.input_shape.empty()) raw.emplace("input_shape", gather.input_shape);
  return raw;
}

// The shape of Y for X of shape `from` and indices of shape `indices`.
using GatherOutputShape = absl::StatusOr<Shape> (*)(const OpAttributes& attributes, const Shape& from,
                                                    const Shape& indices);

absl::StatusOr<Shape> GatherShape(const OpAttributes& attributes, const Shape& from, const Shape& indices) {
  LS_ASSIGN_OR_RETURN(const int64_t axis,
                      NormalizeAxis(std::get<GatherAttributes>(attributes).axis, static_cast<int64_t>(from.size())));
  Shape shape(from.begin(), from.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), from.begin() + axis + 1, from.end());
  return shape;
}

absl::StatusOr<Shape> GatherElementsShape(const OpAttributes& attributes, const Shape& from, const Shape& indices) {
  LS_ASSIGN_OR_RETURN(const int64_t axis,
                      NormalizeAxis(std::get<GatherAttributes>(attributes).axis, static_cast<int64_t>(from.size())));
  LS_RETURN_IF_ERROR(CheckElementIndices(from, indices, axis));
  return indices;
}

absl::StatusOr<Shape> GatherNdShape(const OpAttributes& attributes, const Shape& from, const Shape& indices) {
  const int64_t batch = std::get<GatherNdAttributes>(attributes).batch_dims;
  LS_RETURN_IF_ERROR(CheckCoordinates(from, indices, batch));
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), from.begin() + batch + indices.back(), from.end());
  return shape;
}

template <GatherOutputShape output_shape>
absl::StatusOr<std::vector<ValueInfo>> InferGather(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[1], "indices"));
  LS_ASSIGN_OR_RETURN(Shape shape, output_shape(node.attributes, inputs[0]->shape, inputs[1]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

template <GatherOutputShape output_shape, typename Attributes>
absl::StatusOr<std::vector<ValueInfo>> InferGatherGrad(const Node& node, InputInfos inputs) {
  const Shape& from = std::get<Attributes>(node.attributes).input_shape;
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[1], "indices"));
  LS_RETURN_IF_ERROR(CheckedNumElements(from).status());
  LS_ASSIGN_OR_RETURN(Shape shape, output_shape(node.attributes, from, inputs[1]->shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, std::move(shape)}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, from}};
}

template <OpType kGrad, typename Attributes>
absl::Status GatherGradient(GradientBuilder& b) {
  auto gather = std::get<Attributes>(b.node().attributes);
  gather.input_shape = b.InputInfo(0).shape;
  if (b.Needs(0)) b.SetInputGradient(0, b.Emit("d0", kGrad, {b.OutputGradient(0), b.Input(1)}, std::move(gather)));
  return absl::OkStatus();
}

constexpr OpSchema kGatherFamily[] = {
    {OpType::kGather, 2, 2, 1, 1, ParseGather, FormatGather, InferGather<GatherShape>,
     GatherGradient<OpType::kGatherGrad, GatherAttributes>},
    {OpType::kGatherElements, 2, 2, 1, 1, ParseGather, FormatGather, InferGather<GatherElementsShape>,
     GatherGradient<OpType::kGatherElementsGrad, GatherAttributes>},
    {OpType::kGatherND, 2, 2, 1, 1, ParseGatherNd, FormatGatherNd, InferGather<GatherNdShape>,
     GatherGradient<OpType::kGatherNDGrad, GatherNdAttributes>},
    {OpType::kGatherGrad, 2, 2, 1, 1, ParseGather, FormatGather, InferGatherGrad<GatherShape, GatherAttributes>,
     nullptr},
    {OpType::kGatherElementsGrad, 2, 2, 1, 1, ParseGather, FormatGather,
     InferGatherGrad<GatherElementsShape, GatherAttributes>, nullptr},
    {OpType::kGatherNDGrad, 2, 2, 1, 1, ParseGatherNd, FormatGatherNd,
     InferGatherGrad<GatherNdShape, GatherNdAttributes>, nullptr},
};

}  // namespace

absl::Status CheckElementIndices(const Shape& from, const Shape& indices, int64_t axis) {
  bool fits = from.size() == indices.size();
  for (size_t i = 0; fits && i < from.size(); ++i) fits = static_cast<int64_t>(i) == axis || indices[i] <= from[i];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("indices ", ShapeString(indices), " do not fit a tensor ",
                                                 ShapeString(from), ": beside axis ", axis,
                                                 " no dimension may be longer, and the ranks are equal"));
}

absl::Status CheckCoordinates(const Shape& from, const Shape& indices, int64_t batch_dims) {
  const auto rank = static_cast<int64_t>(from.size());
  const auto index_rank = static_cast<int64_t>(indices.size());
  bool fits = batch_dims >= 0 && batch_dims < index_rank && batch_dims < rank && indices.back() >= 1 &&
              indices.back() <= rank - batch_dims;
  for (int64_t i = 0; fits && i < batch_dims; ++i) fits = indices[i] == from[i];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("indices ", ShapeString(indices), " do not fit a tensor ",
                                                 ShapeString(from), " with ", batch_dims,
                                                 " common leading dimensions; the last dimension of the indices counts "
                                                 "coordinates, 1 to as many as the tensor has left"));
}

absl::Span<const OpSchema> GatherFamily() { return kGatherFamily; }

}  // namespace lockstep
