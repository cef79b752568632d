#include "common/graph/ops/softmax.h"

#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseSoftmax(const RawAttributes& raw) {
  SoftmaxAttributes softmax;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Int("axis", &softmax.axis).Finish());
  return OpAttributes(softmax);
}

RawAttributes FormatSoftmax(const OpAttributes& attributes) {
  return {{"axis", std::get<SoftmaxAttributes>(attributes).axis}};
}

absl::StatusOr<std::vector<ValueInfo>> InferSoftmax(const Node& node, InputInfos inputs) {
  const int64_t rank = static_cast<int64_t>(inputs[0]->shape.size());
  LS_RETURN_IF_ERROR(NormalizeAxis(std::get<SoftmaxAttributes>(node.attributes).axis, rank).status());
  return InferSameAsFirst(node, inputs);
}

absl::Status SoftmaxGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kSoftmaxGrad, {b.OutputGradient(0), b.Output(0)}, b.node().attributes));
  return absl::OkStatus();
}

absl::Status LogSoftmaxGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kLogSoftmaxGrad, {b.OutputGradient(0), b.Output(0)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr OpSchema kSoftmaxFamily[] = {
    {OpType::kSoftmax, 1, 1, 1, 1, ParseSoftmax, FormatSoftmax, InferSoftmax, SoftmaxGradient},
    {OpType::kSoftmaxGrad, 2, 2, 1, 1, ParseSoftmax, FormatSoftmax, InferSoftmax, nullptr},
    {OpType::kLogSoftmax, 1, 1, 1, 1, ParseSoftmax, FormatSoftmax, InferSoftmax, LogSoftmaxGradient},
    {OpType::kLogSoftmaxGrad, 2, 2, 1, 1, ParseSoftmax, FormatSoftmax, InferSoftmax, nullptr},
};

}  // namespace

absl::Span<const OpSchema> SoftmaxFamily() { return kSoftmaxFamily; }

}  // namespace lockstep
