#include "common/graph/ops/join.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int kMostParts = 4096;

absl::StatusOr<OpAttributes> ParseConcat(const RawAttributes& raw) {
  ConcatAttributes concat;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Int("axis", &concat.axis).Finish());
  if (!reader.Has("axis")) return absl::InvalidArgumentError("axis has to be given");
  return OpAttributes(concat);
}

RawAttributes FormatConcat(const OpAttributes& attributes) {
  return {{"axis", std::get<ConcatAttributes>(attributes).axis}};
}

absl::StatusOr<OpAttributes> ParseSplit(const RawAttributes& raw) {
  SplitAttributes split;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Int("axis", &split.axis)
                         .Ints("split", &split.split)
                         .Int("num_outputs", &split.num_outputs)
                         .Finish());
  return OpAttributes(std::move(split));
}

RawAttributes FormatSplit(const OpAttributes& attributes) {
  const auto& split = std::get<SplitAttributes>(attributes);
  RawAttributes raw = {{"axis", split.axis}, {"split", split.split}};
  if (split.num_outputs != 0) raw.emplace("num_outputs", split.num_outputs);
  return raw;
}

absl::StatusOr<std::vector<ValueInfo>> InferConcat(const Node& node, InputInfos inputs) {
  ValueInfo result = *inputs[0];
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(std::get<ConcatAttributes>(node.attributes).axis,
                                                        static_cast<int64_t>(result.shape.size())));
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (inputs[i] == nullptr) return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
    ValueInfo expected = result;
    const Shape& shape = inputs[i]->shape;
    // The length along the axis is free.
    if (shape.size() == expected.shape.size()) expected.shape[axis] = shape[axis];
    LS_RETURN_IF_ERROR(CheckLike(*inputs[i], expected, absl::StrCat("input ", i)));
    if (__builtin_add_overflow(result.shape[axis], shape[axis], &result.shape[axis])) {
      return absl::InvalidArgumentError("the result is too long");
    }
  }
  return std::vector<ValueInfo>{std::move(result)};
}

// The lengths of the parts of `extent` elements.
absl::StatusOr<std::vector<int64_t>> PartLengths(const SplitAttributes& split, int64_t extent, size_t outputs) {
  const auto count = static_cast<int64_t>(outputs);
  std::vector<int64_t> lengths = split.split;
  if (lengths.empty()) {
    const int64_t length = extent / count + (extent % count != 0 ? 1 : 0);
    lengths.assign(outputs, length);
    lengths.back() = extent - length * (count - 1);
    if (lengths.back() < 0 || (split.num_outputs == 0 && lengths.back() != length)) {
      return absl::InvalidArgumentError(absl::StrCat("an axis of ", extent, " elements does not make ", count,
                                                     " equal parts. State them in `split`"));
    }
  }
  int64_t total = 0;
  bool possible = lengths.size() == outputs && (split.num_outputs == 0 || split.num_outputs == count);
  for (const int64_t length : lengths) {
    possible = possible && length >= 0 && !__builtin_add_overflow(total, length, &total);
  }
  if (!possible || total != extent) {
    return absl::InvalidArgumentError(absl::StrCat("parts of ", ShapeString(lengths), " elements do not fit ", count,
                                                   " outputs and an axis of ", extent));
  }
  return lengths;
}

absl::StatusOr<std::vector<ValueInfo>> InferSplit(const Node& node, InputInfos inputs) {
  const auto& split = std::get<SplitAttributes>(node.attributes);
  const Shape& from = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(split.axis, static_cast<int64_t>(from.size())));
  LS_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PartLengths(split, from[axis], node.outputs.size()));
  std::vector<ValueInfo> infos(lengths.size(), *inputs[0]);
  for (size_t i = 0; i < lengths.size(); ++i) infos[i].shape[axis] = lengths[i];
  return infos;
}

absl::Status ConcatGradient(GradientBuilder& b) {
  const int64_t axis = std::get<ConcatAttributes>(b.node().attributes).axis;
  const auto rank = static_cast<int64_t>(b.OutputInfo(0).shape.size());
  int64_t begin = 0;
  for (size_t i = 0; i < b.node().inputs.size(); ++i) {
    const int64_t end = begin + b.InputInfo(i).shape[axis < 0 ? axis + rank : axis];
    if (b.Needs(i)) {
      const SliceAttributes part{.starts = {begin}, .ends = {end}, .axes = {axis}};
      b.SetInputGradient(i, b.Emit(absl::StrCat("d", i), OpType::kSlice, {b.OutputGradient(0)}, part));
    }
    begin = end;
  }
  return absl::OkStatus();
}

// The gradients of the parts side by side; where the loss does not depend on a part, its neighbour is filled up.
absl::Status SplitGradient(GradientBuilder& b) {
  const auto& split = std::get<SplitAttributes>(b.node().attributes);
  const Shape shape = b.InputInfo(0).shape;
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(split.axis, static_cast<int64_t>(shape.size())));
  LS_ASSIGN_OR_RETURN(const std::vector<int64_t> lengths, PartLengths(split, shape[axis], b.node().outputs.size()));
  struct Part {
    std::string gradient;
    int64_t before = 0;
    int64_t behind = 0;
  };
  std::vector<Part> parts;
  int64_t leading = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!b.OutputGradient(i).empty()) {
      parts.push_back({b.OutputGradient(i), leading, 0});
      leading = 0;
    } else {
      (parts.empty() ? leading : parts.back().behind) += lengths[i];
    }
  }
  std::vector<std::string> filled;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PadAttributes pad{.pads = {parts[i].before, parts[i].behind}, .axes = {axis}};
    const bool whole = parts[i].before == 0 && parts[i].behind == 0;
    filled.push_back(whole ? parts[i].gradient
                           : b.Emit(absl::StrCat("d0.part", i), OpType::kPad, {parts[i].gradient}, pad));
  }
  const bool joined = filled.size() == 1;
  b.SetInputGradient(0, joined ? filled[0] : b.Emit("d0", OpType::kConcat, filled, ConcatAttributes{axis}));
  return absl::OkStatus();
}

constexpr OpSchema kJoinFamily[] = {
    {OpType::kConcat, 1, kMostParts, 1, 1, ParseConcat, FormatConcat, InferConcat, ConcatGradient},
    {OpType::kSplit, 1, 1, 1, kMostParts, ParseSplit, FormatSplit, InferSplit, SplitGradient},
};

}  // namespace

absl::Span<const OpSchema> JoinFamily() { return kJoinFamily; }

}  // namespace lockstep
