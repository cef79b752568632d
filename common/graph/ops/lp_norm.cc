#include "common/graph/ops/lp_norm.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseLpNorm(const RawAttributes& raw) {
  LpNormAttributes norm;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Int("axis", &norm.axis).Int("p", &norm.p).Finish());
  if (norm.p != 1 && norm.p != 2) return absl::InvalidArgumentError(absl::StrCat("p is ", norm.p, "; it is 1 or 2"));
  return OpAttributes(norm);
}

RawAttributes FormatLpNorm(const OpAttributes& attributes) {
  const auto& norm = std::get<LpNormAttributes>(attributes);
  return {{"axis", norm.axis}, {"p", norm.p}};
}

absl::StatusOr<std::vector<ValueInfo>> InferLpNorm(const Node& node, InputInfos inputs) {
  const auto rank = static_cast<int64_t>(inputs[0]->shape.size());
  LS_RETURN_IF_ERROR(NormalizeAxis(std::get<LpNormAttributes>(node.attributes).axis, rank).status());
  return InferSameAsFirst(node, inputs);
}

absl::Status LpNormGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kLpNormGrad, {b.OutputGradient(0), b.Input(0)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr OpSchema kLpNormFamily[] = {
    {OpType::kLpNormalization, 1, 1, 1, 1, ParseLpNorm, FormatLpNorm, InferLpNorm, LpNormGradient},
    {OpType::kLpNormGrad, 2, 2, 1, 1, ParseLpNorm, FormatLpNorm, InferLpNorm, nullptr},
};

}  // namespace

absl::Span<const OpSchema> LpNormFamily() { return kLpNormFamily; }

}  // namespace lockstep
