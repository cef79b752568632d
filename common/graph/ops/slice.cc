#include "common/graph/ops/slice.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseSlice(const RawAttributes& raw) {
  SliceAttributes slice;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Ints("starts", &slice.starts)
                         .Ints("ends", &slice.ends)
                         .Ints("axes", &slice.axes)
                         .Ints("steps", &slice.steps)
                         .Ints("input_shape", &slice.input_shape)
                         .Finish());
  const size_t count = slice.starts.size();
  if (slice.ends.size() != count || (!slice.axes.empty() && slice.axes.size() != count) ||
      (!slice.steps.empty() && slice.steps.size() != count)) {
    return absl::InvalidArgumentError("starts, ends, axes and steps have to be equally many");
  }
  for (const int64_t step : slice.steps) {
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) {
      return absl::InvalidArgumentError(absl::StrCat("a step of ", step, " leads nowhere"));
    }
  }
  return OpAttributes(std::move(slice));
}

RawAttributes FormatSlice(const OpAttributes& attributes) {
  const auto& slice = std::get<SliceAttributes>(attributes);
  RawAttributes raw = {{"starts", slice.starts}, {"ends", slice.ends}, {"axes", slice.axes}, {"steps", slice.steps}};
  if (!slice.input_shape.empty()) raw.emplace("input_shape", slice.input_shape);
  return raw;
}

absl::StatusOr<Shape> SliceOutputShape(const SliceAttributes& slice, const Shape& from) {
  const auto rank = static_cast<int64_t>(from.size());
  std::vector<bool> named(from.size(), false);
  for (size_t i = 0; i < slice.starts.size(); ++i) {
    const int64_t given = slice.axes.empty() ? static_cast<int64_t>(i) : slice.axes[i];
    LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(given, rank));
    if (named[axis]) return absl::InvalidArgumentError(absl::StrCat("axis ", given, " is named twice"));
    named[axis] = true;
  }
  Shape shape = from;
  for (int64_t axis = 0; axis < rank; ++axis) shape[axis] = slice.RangeOf(axis, rank, from[axis]).count;
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferSlice(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(Shape shape, SliceOutputShape(std::get<SliceAttributes>(node.attributes), inputs[0]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferSliceGrad(const Node& node, InputInfos inputs) {
  const auto& slice = std::get<SliceAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckedNumElements(slice.input_shape).status());
  LS_ASSIGN_OR_RETURN(Shape shape, SliceOutputShape(slice, slice.input_shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, std::move(shape)}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, slice.input_shape}};
}

absl::Status SliceGradient(GradientBuilder& b) {
  auto slice = std::get<SliceAttributes>(b.node().attributes);
  slice.input_shape = b.InputInfo(0).shape;
  b.SetInputGradient(0, b.Emit("d0", OpType::kSliceGrad, {b.OutputGradient(0)}, std::move(slice)));
  return absl::OkStatus();
}

constexpr OpSchema kSliceFamily[] = {
    {OpType::kSlice, 1, 1, 1, 1, ParseSlice, FormatSlice, InferSlice, SliceGradient},
    {OpType::kSliceGrad, 1, 1, 1, 1, ParseSlice, FormatSlice, InferSliceGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> SliceFamily() { return kSliceFamily; }

}  // namespace lockstep
