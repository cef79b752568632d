#include "common/graph/ops/softmax.h"

#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> Parse(const RawAttributes& raw) {
  SoftmaxAttributes softmax;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Int("axis", &softmax.axis).Finish());
  return OpAttributes(softmax);
}

RawAttributes Format(const OpAttributes& attributes) {
  return {{"axis", std::get<SoftmaxAttributes>(attributes).axis}};
}

absl::StatusOr<std::vector<ValueInfo>> Infer(const Node& node, InputInfos inputs) {
  const int64_t rank = static_cast<int64_t>(inputs[0]->shape.size());
  LS_RETURN_IF_ERROR(NormalizeAxis(std::get<SoftmaxAttributes>(node.attributes).axis, rank).status());
  return InferSameAsFirst(node, inputs);
}

absl::Status Gradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kSoftmaxGrad, {b.OutputGradient(0), b.Output(0)}, b.node().attributes));
  return absl::OkStatus();
}

absl::Status LogGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kLogSoftmaxGrad, {b.OutputGradient(0), b.Output(0)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr OpSchema kFamily[] = {
    {OpType::kSoftmax, 1, 1, 1, 1, Parse, Format, Infer, Gradient},
    {OpType::kSoftmaxGrad, 2, 2, 1, 1, Parse, Format, Infer, nullptr},
    {OpType::kLogSoftmax, 1, 1, 1, 1, Parse, Format, Infer, LogGradient},
    {OpType::kLogSoftmaxGrad, 2, 2, 1, 1, Parse, Format, Infer, nullptr},
};

}  // namespace

absl::Span<const OpSchema> SoftmaxFamily() { return kFamily; }

}  // namespace lockstep
