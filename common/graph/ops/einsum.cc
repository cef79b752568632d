#include "common/graph/ops/einsum.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/einsum_equation.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int kMaxOperands = 8;

absl::StatusOr<OpAttributes> ParseEinsumAttributes(const RawAttributes& raw) {
  EinsumAttributes einsum;
  LS_RETURN_IF_ERROR(
      AttributeReader(raw).String("equation", &einsum.equation).Int("operand", &einsum.operand).Finish());
  if (einsum.equation.empty()) return absl::InvalidArgumentError("attribute 'equation' is missing");
  if (einsum.operand < 0 || einsum.operand >= kMaxOperands) {
    return absl::InvalidArgumentError(absl::StrCat("there is no operand ", einsum.operand));
  }
  return OpAttributes(std::move(einsum));
}

RawAttributes FormatEinsum(const OpAttributes& attributes) {
  const auto& einsum = std::get<EinsumAttributes>(attributes);
  return {{"equation", einsum.equation}, {"operand", einsum.operand}};
}

absl::StatusOr<EinsumTerms> TermsOf(const Node& node, InputInfos operands) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < operands.size() && operands[i] != nullptr; ++i) {
    LS_RETURN_IF_ERROR(CheckFloating(*operands[i], absl::StrCat("operand ", i)));
    LS_RETURN_IF_ERROR(CheckLike(*operands[i], {operands[0]->dtype, operands[i]->shape}, absl::StrCat("operand ", i)));
    shapes.push_back(operands[i]->shape);
  }
  const std::string& equation = std::get<EinsumAttributes>(node.attributes).equation;
  LS_ASSIGN_OR_RETURN(EinsumTerms terms, ParseEinsum(equation, shapes));
  if (!CheckedNumElements(terms.extents).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("equation '", equation, "' sums more products than can be counted"));
  }
  return terms;
}

absl::StatusOr<std::vector<ValueInfo>> InferEinsum(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const EinsumTerms terms, TermsOf(node, inputs));
  return std::vector<ValueInfo>{{inputs[0]->dtype, terms.output_shape()}};
}

absl::StatusOr<std::vector<ValueInfo>> InferEinsumGrad(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const EinsumTerms terms, TermsOf(node, inputs.subspan(1)));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, terms.output_shape()}, "dY"));
  const auto operand = static_cast<size_t>(std::get<EinsumAttributes>(node.attributes).operand);
  if (operand >= terms.operands.size())
    return absl::InvalidArgumentError(absl::StrCat("there is no operand ", operand));
  return std::vector<ValueInfo>{*inputs[1 + operand]};
}

absl::Status EinsumGradient(GradientBuilder& b) {
  auto einsum = std::get<EinsumAttributes>(b.node().attributes);
  for (size_t i = 0; i < b.node().inputs.size(); ++i) {
    if (!b.Needs(i)) continue;
    einsum.operand = static_cast<int64_t>(i);
    std::vector<std::string> inputs = {b.OutputGradient(0)};
    for (const std::string& operand : b.node().inputs) inputs.push_back(operand);
    b.SetInputGradient(i, b.Emit(absl::StrCat("d", i), OpType::kEinsumGrad, std::move(inputs), einsum));
  }
  return absl::OkStatus();
}

constexpr OpSchema kEinsumFamily[] = {
    {OpType::kEinsum, 1, kMaxOperands, 1, 1, ParseEinsumAttributes, FormatEinsum, InferEinsum, EinsumGradient},
    {OpType::kEinsumGrad, 2, kMaxOperands + 1, 1, 1, ParseEinsumAttributes, FormatEinsum, InferEinsumGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> EinsumFamily() { return kEinsumFamily; }

}  // namespace lockstep
