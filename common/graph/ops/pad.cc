#include "common/graph/ops/pad.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// In the order of PadMode.
constexpr std::array<absl::string_view, 4> kPadModes = {"constant", "reflect", "edge", "wrap"};

absl::StatusOr<OpAttributes> ParsePad(const RawAttributes& raw) {
  PadAttributes pad;
  std::string mode(kPadModes[0]);
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Ints("pads", &pad.pads)
                         .Ints("axes", &pad.axes)
                         .String("mode", &mode)
                         .Float("value", &pad.value)
                         .Ints("input_shape", &pad.input_shape)
                         .Finish());
  const auto* found = std::find(kPadModes.begin(), kPadModes.end(), mode);
  if (found == kPadModes.end()) {
    return absl::InvalidArgumentError(absl::StrCat("mode '", mode, "' is neither constant, reflect, edge nor wrap"));
  }
  pad.mode = static_cast<PadMode>(found - kPadModes.begin());
  return OpAttributes(std::move(pad));
}

RawAttributes FormatPad(const OpAttributes& attributes) {
  const auto& pad = std::get<PadAttributes>(attributes);
  RawAttributes raw = {{"pads", pad.pads},
                       {"axes", pad.axes},
                       {"mode", std::string(kPadModes[static_cast<size_t>(pad.mode)])},
                       {"value", pad.value}};
  if (!pad.input_shape.empty()) raw.emplace("input_shape", pad.input_shape);
  return raw;
}

absl::StatusOr<OpAttributes> ParseTile(const RawAttributes& raw) {
  TileAttributes tile;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Ints("repeats", &tile.repeats).Finish());
  return OpAttributes(std::move(tile));
}

RawAttributes FormatTile(const OpAttributes& attributes) {
  return {{"repeats", std::get<TileAttributes>(attributes).repeats}};
}

// The length of a padded axis.
absl::StatusOr<int64_t> PaddedExtent(const PadAttributes& pad, PadRange range, int64_t extent) {
  constexpr int64_t kMost = int64_t{1} << 48;
  if (std::max(range.before, range.behind) > kMost || std::min(range.before, range.behind) < -kMost || extent > kMost) {
    return absl::InvalidArgumentError("pads are too large");
  }
  const int64_t left = extent + std::min<int64_t>(0, range.before) + std::min<int64_t>(0, range.behind);
  const int64_t result = extent + range.before + range.behind;
  const bool continues = pad.mode != PadMode::kConstant;
  if (result < 0 || (continues && (left < 0 || (left == 0 && result > 0)))) {
    return absl::InvalidArgumentError(absl::StrCat("an axis of ", extent, " elements cannot be padded by ",
                                                   range.before, " and ", range.behind, " in mode ",
                                                   kPadModes[static_cast<size_t>(pad.mode)]));
  }
  return result;
}

absl::StatusOr<Shape> PaddedShape(const PadAttributes& pad, const Shape& from) {
  const auto rank = static_cast<int64_t>(from.size());
  const size_t axes = pad.axes.empty() ? from.size() : pad.axes.size();
  if (pad.pads.size() != 2 * axes) {
    return absl::InvalidArgumentError(
        absl::StrCat(pad.pads.size(), " pads are given; each of ", axes, " axes takes one in front and one behind"));
  }
  std::vector<bool> named(from.size(), false);
  for (const int64_t given : pad.axes) {
    LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(given, rank));
    if (named[axis]) return absl::InvalidArgumentError(absl::StrCat("axis ", given, " is named twice"));
    named[axis] = true;
  }
  Shape shape = from;
  for (int64_t axis = 0; axis < rank; ++axis) {
    LS_ASSIGN_OR_RETURN(shape[axis], PaddedExtent(pad, pad.RangeOf(axis, rank), from[axis]));
  }
  return shape;
}

// Whether a constant is a number of the element type.
bool IsNumberOf(DType dtype, double value) {
  if (dtype == DType::kF32 || dtype == DType::kF64 || value == 0.0) return true;
  if (IsFloating(dtype)) return false;
  if (dtype == DType::kBool) return value == 1.0;
  const bool is_signed = dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
  // Exact where doubles are: in the widest types up to 2^53.
  const int bits = std::min(8 * DTypeSize(dtype) - (is_signed ? 1 : 0), 53);
  const auto most = static_cast<double>((uint64_t{1} << bits) - 1);
  return value <= most && value >= (is_signed ? -most - 1 : 0.0) &&
         value == static_cast<double>(static_cast<int64_t>(value));
}

absl::StatusOr<std::vector<ValueInfo>> InferPad(const Node& node, InputInfos inputs) {
  const double value = std::get<PadAttributes>(node.attributes).value;
  if (!IsNumberOf(inputs[0]->dtype, value)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input is ", DTypeName(inputs[0]->dtype), " and cannot be padded with ", value));
  }
  LS_ASSIGN_OR_RETURN(Shape shape, PaddedShape(std::get<PadAttributes>(node.attributes), inputs[0]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferPadGrad(const Node& node, InputInfos inputs) {
  const auto& pad = std::get<PadAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckedNumElements(pad.input_shape).status());
  LS_ASSIGN_OR_RETURN(Shape shape, PaddedShape(pad, pad.input_shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, std::move(shape)}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, pad.input_shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferTile(const Node& node, InputInfos inputs) {
  const auto& tile = std::get<TileAttributes>(node.attributes);
  Shape shape = inputs[0]->shape;
  bool possible = tile.repeats.size() == shape.size();
  for (size_t i = 0; possible && i < shape.size(); ++i) {
    possible = tile.repeats[i] >= 0 && !__builtin_mul_overflow(shape[i], tile.repeats[i], &shape[i]);
  }
  if (!possible) {
    return absl::InvalidArgumentError(absl::StrCat("repeats ", ShapeString(tile.repeats), " do not fit input ",
                                                   ShapeString(inputs[0]->shape), "; one per dimension, 0 or more"));
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::Status PadGradient(GradientBuilder& b) {
  auto pad = std::get<PadAttributes>(b.node().attributes);
  if (pad.mode == PadMode::kConstant) {
    // What was added is cut off, what was cut off gets 0.
    for (int64_t& count : pad.pads) count = -count;
    pad.value = 0.0;
    b.SetInputGradient(0, b.Emit("d0", OpType::kPad, {b.OutputGradient(0)}, std::move(pad)));
    return absl::OkStatus();
  }
  pad.input_shape = b.InputInfo(0).shape;
  b.SetInputGradient(0, b.Emit("d0", OpType::kPadGrad, {b.OutputGradient(0)}, std::move(pad)));
  return absl::OkStatus();
}

// dY as [repeat, extent, ...], summed over the repeats.
absl::Status TileGradient(GradientBuilder& b) {
  const auto& tile = std::get<TileAttributes>(b.node().attributes);
  const Shape shape = b.InputInfo(0).shape;
  Shape parts;
  ReduceAttributes repeats{.axes = {}, .keep_dims = false, .noop_with_empty_axes = true};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (tile.repeats[i] != 1) {
      repeats.axes.push_back(static_cast<int64_t>(parts.size()));
      parts.push_back(tile.repeats[i]);
    }
    parts.push_back(shape[i]);
  }
  std::string gradient = b.ReshapeTo("d0.parts", b.OutputGradient(0), parts);
  if (!repeats.axes.empty()) gradient = b.Emit("d0", OpType::kReduceSum, {gradient}, repeats);
  b.SetInputGradient(0, gradient);
  return absl::OkStatus();
}

constexpr OpSchema kPadFamily[] = {
    {OpType::kPad, 1, 1, 1, 1, ParsePad, FormatPad, InferPad, PadGradient},
    {OpType::kPadGrad, 1, 1, 1, 1, ParsePad, FormatPad, InferPadGrad, nullptr},
    {OpType::kTile, 1, 1, 1, 1, ParseTile, FormatTile, InferTile, TileGradient},
};

}  // namespace

absl::Span<const OpSchema> PadFamily() { return kPadFamily; }

}  // namespace lockstep
