#include "common/graph/ops/sequence.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseCumSum(const RawAttributes& raw) {
  CumSumAttributes sum;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Int("axis", &sum.axis)
                         .Bool("exclusive", &sum.exclusive)
                         .Bool("reverse", &sum.reverse)
                         .Finish());
  return OpAttributes(sum);
}

RawAttributes FormatCumSum(const OpAttributes& attributes) {
  const auto& sum = std::get<CumSumAttributes>(attributes);
  return {{"axis", sum.axis}, {"exclusive", int64_t{sum.exclusive}}, {"reverse", int64_t{sum.reverse}}};
}

absl::StatusOr<OpAttributes> ParseTrilu(const RawAttributes& raw) {
  TriluAttributes trilu;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Bool("upper", &trilu.upper).Int("k", &trilu.k).Finish());
  return OpAttributes(trilu);
}

RawAttributes FormatTrilu(const OpAttributes& attributes) {
  const auto& trilu = std::get<TriluAttributes>(attributes);
  return {{"upper", int64_t{trilu.upper}}, {"k", trilu.k}};
}

absl::StatusOr<OpAttributes> ParseReverse(const RawAttributes& raw) {
  ReverseSequenceAttributes reverse;
  LS_RETURN_IF_ERROR(
      AttributeReader(raw).Int("batch_axis", &reverse.batch_axis).Int("time_axis", &reverse.time_axis).Finish());
  const bool time_first = reverse.batch_axis == 1 && reverse.time_axis == 0;
  if (!time_first && (reverse.batch_axis != 0 || reverse.time_axis != 1)) {
    return absl::InvalidArgumentError(absl::StrCat("batch_axis is ", reverse.batch_axis, ", time_axis is ",
                                                   reverse.time_axis, "; one is 0 and the other 1"));
  }
  return OpAttributes(reverse);
}

RawAttributes FormatReverse(const OpAttributes& attributes) {
  const auto& reverse = std::get<ReverseSequenceAttributes>(attributes);
  return {{"batch_axis", reverse.batch_axis}, {"time_axis", reverse.time_axis}};
}

absl::StatusOr<std::vector<ValueInfo>> InferCumSum(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(
      NormalizeAxis(std::get<CumSumAttributes>(node.attributes).axis, static_cast<int64_t>(inputs[0]->shape.size()))
          .status());
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferTrilu(const Node&, InputInfos inputs) {
  if (inputs[0]->shape.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(inputs[0]->shape), "; the op takes matrices"));
  }
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferReverse(const Node& node, InputInfos inputs) {
  const auto& reverse = std::get<ReverseSequenceAttributes>(node.attributes);
  const Shape& x = inputs[0]->shape;
  if (x.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(x), "; the op takes a batch of sequences"));
  }
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[1], "sequence_lens"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {inputs[1]->dtype, {x[reverse.batch_axis]}}, "sequence_lens"));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::Status CumSumGradient(GradientBuilder& b) {
  auto sum = std::get<CumSumAttributes>(b.node().attributes);
  sum.reverse = !sum.reverse;
  b.SetInputGradient(0, b.Emit("d0", OpType::kCumSum, {b.OutputGradient(0)}, sum));
  return absl::OkStatus();
}

absl::Status TriluGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kTrilu, {b.OutputGradient(0)}, b.node().attributes));
  return absl::OkStatus();
}

absl::Status ReverseGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kReverseSequence, {b.OutputGradient(0), b.Input(1)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr OpSchema kSequenceFamily[] = {
    {OpType::kCumSum, 1, 1, 1, 1, ParseCumSum, FormatCumSum, InferCumSum, CumSumGradient},
    {OpType::kTrilu, 1, 1, 1, 1, ParseTrilu, FormatTrilu, InferTrilu, TriluGradient},
    {OpType::kReverseSequence, 2, 2, 1, 1, ParseReverse, FormatReverse, InferReverse, ReverseGradient},
};

}  // namespace

absl::Span<const OpSchema> SequenceFamily() { return kSequenceFamily; }

}  // namespace lockstep
