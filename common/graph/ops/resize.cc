#include "common/graph/ops/resize.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

template <typename Value>
struct NamedValue {
  Value value;
  const char* name;
};

constexpr NamedValue<ResizeMode> kResizeModes[] = {{ResizeMode::kNearest, "nearest"}, {ResizeMode::kLinear, "linear"}};
constexpr NamedValue<ResizeCoordinates> kCoordinates[] = {
    {ResizeCoordinates::kHalfPixel, "half_pixel"},
    {ResizeCoordinates::kPytorchHalfPixel, "pytorch_half_pixel"},
    {ResizeCoordinates::kAlignCorners, "align_corners"},
    {ResizeCoordinates::kAsymmetric, "asymmetric"},
    {ResizeCoordinates::kTfHalfPixelForNn, "tf_half_pixel_for_nn"}};
constexpr NamedValue<ResizeRounding> kRoundings[] = {{ResizeRounding::kRoundPreferFloor, "round_prefer_floor"},
                                                     {ResizeRounding::kRoundPreferCeil, "round_prefer_ceil"},
                                                     {ResizeRounding::kFloor, "floor"},
                                                     {ResizeRounding::kCeil, "ceil"}};

template <typename Value, size_t kCount>
absl::Status Find(const NamedValue<Value> (&rows)[kCount], const char* attribute, const std::string& name,
                  Value* value) {
  for (const NamedValue<Value>& row : rows) {
    if (name != row.name) continue;
    *value = row.value;
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat("has ", attribute, " '", name, "', which does not train here"));
}

// What a file may say besides, and what it has to be.
absl::Status ReadRest(AttributeReader& reader) {
  bool antialias = false;
  std::string policy = "stretch";
  // These mean something to a cubic or a cropping resize only.
  double coefficient = 0;
  double outside = 0;
  bool exclude_outside = false;
  std::vector<double> roi;
  LS_RETURN_IF_ERROR(reader.Bool("antialias", &antialias)
                         .String("keep_aspect_ratio_policy", &policy)
                         .Float("cubic_coeff_a", &coefficient)
                         .Float("extrapolation_value", &outside)
                         .Bool("exclude_outside", &exclude_outside)
                         .Floats("roi", &roi)
                         .Finish());
  if (antialias) return absl::UnimplementedError("smooths while it shrinks (antialias), which does not train here");
  if (policy != "stretch") return absl::UnimplementedError(absl::StrCat("has keep_aspect_ratio_policy '", policy, "'"));
  return absl::OkStatus();
}

absl::StatusOr<OpAttributes> ParseResize(const RawAttributes& raw) {
  ResizeAttributes resize;
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";
  AttributeReader reader(raw);
  reader.String("mode", &mode)
      .String("coordinate_transformation_mode", &coordinates)
      .String("nearest_mode", &rounding)
      .Floats("scales", &resize.scales)
      .Ints("sizes", &resize.sizes)
      .Ints("axes", &resize.axes)
      .Ints("input_shape", &resize.input_shape);
  LS_RETURN_IF_ERROR(ReadRest(reader));
  LS_RETURN_IF_ERROR(Find(kResizeModes, "mode", mode, &resize.mode));
  LS_RETURN_IF_ERROR(Find(kCoordinates, "coordinate_transformation_mode", coordinates, &resize.coordinates));
  LS_RETURN_IF_ERROR(Find(kRoundings, "nearest_mode", rounding, &resize.rounding));
  if (resize.scales.empty() == resize.sizes.empty()) {
    return absl::InvalidArgumentError("takes either scales or sizes");
  }
  for (const double scale : resize.scales) {
    if (!(scale > 0)) return absl::InvalidArgumentError(absl::StrCat("scale ", scale, " is not positive"));
  }
  return OpAttributes(std::move(resize));
}

RawAttributes FormatResize(const OpAttributes& attributes) {
  const auto& resize = std::get<ResizeAttributes>(attributes);
  RawAttributes raw = {
      {"mode", std::string(kResizeModes[static_cast<size_t>(resize.mode)].name)},
      {"coordinate_transformation_mode", std::string(kCoordinates[static_cast<size_t>(resize.coordinates)].name)},
      {"nearest_mode", std::string(kRoundings[static_cast<size_t>(resize.rounding)].name)}};
  if (!resize.scales.empty()) raw.emplace("scales", resize.scales);
  if (!resize.sizes.empty()) raw.emplace("sizes", resize.sizes);
  if (!resize.axes.empty()) raw.emplace("axes", resize.axes);
  if (!resize.input_shape.empty()) raw.emplace("input_shape", resize.input_shape);
  return raw;
}

absl::StatusOr<Shape> ResizeOutputShape(const ResizeAttributes& resize, const Shape& input) {
  const auto rank = static_cast<int64_t>(input.size());
  std::vector<int64_t> axes = resize.axes;
  for (int64_t i = 0; resize.axes.empty() && i < rank; ++i) axes.push_back(i);
  const size_t given = std::max(resize.scales.size(), resize.sizes.size());
  if (given != axes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", given, " scales or sizes for ", axes.size(), " dimensions of ", ShapeString(input)));
  }
  Shape shape = input;
  for (size_t i = 0; i < axes.size(); ++i) {
    LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(axes[i], rank));
    if (input[axis] < 1) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", axis, " of ", ShapeString(input), " is empty"));
    }
    // In floats, as others do: the scale 0.7 is a little less than that, and makes 7 of 10 all the same.
    const float scaled =
        resize.scales.empty() ? 0 : static_cast<float>(input[axis]) * static_cast<float>(resize.scales[i]);
    shape[axis] = resize.scales.empty() ? resize.sizes[i] : static_cast<int64_t>(std::min(scaled, 0x1p40f));
    if (shape[axis] < 1) {
      return absl::InvalidArgumentError(absl::StrCat("makes dimension ", axis, " of ", ShapeString(input), " empty"));
    }
  }
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferResize(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  LS_ASSIGN_OR_RETURN(Shape shape, ResizeOutputShape(std::get<ResizeAttributes>(node.attributes), inputs[0]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferResizeGrad(const Node& node, InputInfos inputs) {
  const auto& resize = std::get<ResizeAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_ASSIGN_OR_RETURN(Shape shape, ResizeOutputShape(resize, resize.input_shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, std::move(shape)}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, resize.input_shape}};
}

absl::Status ResizeGradient(GradientBuilder& b) {
  auto resize = std::get<ResizeAttributes>(b.node().attributes);
  resize.input_shape = b.InputInfo(0).shape;
  b.SetInputGradient(0, b.Emit("dX", OpType::kResizeGrad, {b.OutputGradient(0)}, std::move(resize)));
  return absl::OkStatus();
}

constexpr OpSchema kResizeFamily[] = {
    {OpType::kResize, 1, 1, 1, 1, ParseResize, FormatResize, InferResize, ResizeGradient},
    {OpType::kResizeGrad, 1, 1, 1, 1, ParseResize, FormatResize, InferResizeGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ResizeFamily() { return kResizeFamily; }

}  // namespace lockstep
