#include "common/graph/passes/reduce_precision.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/ops/wide_operands.h"
#include "common/status/status_macros.h"
#include "common/tensor/bf16.h"

namespace lockstep {
namespace {

enum class Treatment : uint8_t {
  kNarrow,  // operands become BF16
  kFollow,  // operands become BF16 where one of them is
  kWide,    // operands become F32
  kGather,  // as kFollow, but a table of the state is read as it is, and the result becomes BF16
  kStay,    // operands stay what they are
};

// A cross entropy reads BF16 and gives F32, unless somebody reads its log_prob.
Treatment TreatmentOf(const Node& node) {
  switch (node.op) {
    case OpType::kGemm:
    case OpType::kMatMul:
    case OpType::kBatchMatMul:
    case OpType::kConv:
    case OpType::kConvTranspose:
    case OpType::kEinsum:
    case OpType::kAttention:
      return Treatment::kNarrow;
    case OpType::kPow:
    case OpType::kMod:
    case OpType::kReciprocal:
    case OpType::kSqrt:
    case OpType::kExp:
    case OpType::kLog:
    case OpType::kSin:
    case OpType::kCos:
    case OpType::kSoftplus:
    case OpType::kCumSum:
    case OpType::kReduceSum:
    case OpType::kReduceMean:
    case OpType::kReduceProd:
    case OpType::kReduceL1:
    case OpType::kReduceL2:
    case OpType::kReduceLogSum:
    case OpType::kReduceLogSumExp:
    case OpType::kReduceSumSquare:
    case OpType::kLogSoftmax:
    case OpType::kNegativeLogLikelihoodLoss:
    case OpType::kLpNormalization:
    case OpType::kPointwiseLoss:
    case OpType::kLossWeights:
    case OpType::kMaskedSum:
    case OpType::kCountCorrect:
      return Treatment::kWide;
    case OpType::kSoftmaxCrossEntropyLoss:
      return node.outputs.size() > 1 && !node.outputs[1].empty() ? Treatment::kWide : Treatment::kFollow;
    case OpType::kGather:
      return Treatment::kGather;
    case OpType::kCast:
      return Treatment::kStay;
    default:
      return Treatment::kFollow;
  }
}

// To the nearest, and the largest finite number where that would be infinite.
Tensor RoundedConstant(const Tensor& value) {
  Tensor rounded = *Tensor::Create(DType::kBF16, value.shape());
  auto* to = reinterpret_cast<Bf16*>(rounded.data());
  const absl::Span<const float> from = value.elements<float>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = Bf16(from[i]);
    if (std::isfinite(from[i]) && !std::isfinite(to[i])) to[i] = Bf16(std::copysign(0x1.fep127f, from[i]));
  }
  return rounded;
}

class Rewriter {
 public:
  explicit Rewriter(Graph* graph) : graph_(graph) {
    for (const Variable& variable : graph->variables) state_.insert(variable.name);
    for (const Constant& constant : graph->constants) constants_.emplace(constant.name, constant.value);
  }

  absl::Status Run() {
    std::vector<Node> nodes = std::move(graph_->nodes);
    graph_->nodes.clear();
    for (const Node& node : nodes) {
      for (const std::string& output : node.outputs) graph_->values.erase(output);
    }
    for (Node& node : nodes) LS_RETURN_IF_ERROR(Rewrite(std::move(node)));
    return absl::OkStatus();
  }

 private:
  DType TypeOf(const std::string& value) const { return graph_->values.at(value).dtype; }

  bool ReadsBf16(const Node& node, const WideOperands& wide) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].empty() && !wide.input(i) && TypeOf(node.inputs[i]) == DType::kBF16) return true;
    }
    return false;
  }

  absl::Status Rewrite(Node node) {
    const Treatment treatment = TreatmentOf(node);
    if (treatment == Treatment::kStay) return AppendNode(graph_, std::move(node));
    if (treatment == Treatment::kGather && state_.count(node.inputs[0]) != 0) return RewriteGather(std::move(node));
    const WideOperands wide = WideOperandsOf(node.op);
    const bool narrow = treatment == Treatment::kNarrow || (treatment != Treatment::kWide && ReadsBf16(node, wide));
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      const DType wanted = narrow && !wide.input(i) ? DType::kBF16 : DType::kF32;
      LS_ASSIGN_OR_RETURN(node.inputs[i], As(wanted, node.inputs[i]));
    }
    return AppendNode(graph_, std::move(node));
  }

  absl::Status RewriteGather(Node node) {
    if (TypeOf(node.inputs[0]) != DType::kF32) return AppendNode(graph_, std::move(node));
    const std::string name = node.outputs[0];
    const std::string gathered = absl::StrCat("lockstep.gathered.", name);
    node.outputs[0] = gathered;
    LS_RETURN_IF_ERROR(AppendNode(graph_, std::move(node)));
    return AppendCast(gathered, DType::kBF16, name);
  }

  absl::Status AppendCast(const std::string& from, DType to, const std::string& name) {
    return AppendNode(graph_,
                      {absl::StrCat("lockstep.cast.", name), OpType::kCast, {from}, {name}, CastAttributes{to}});
  }

  // The value itself, or as `wanted` where it is the other one of F32 and BF16.
  absl::StatusOr<std::string> As(DType wanted, const std::string& value) {
    const DType dtype = TypeOf(value);
    if (dtype == wanted || (dtype != DType::kF32 && dtype != DType::kBF16)) return value;
    std::string name = absl::StrCat(wanted == DType::kBF16 ? "lockstep.bf16." : "lockstep.f32.", value);
    if (graph_->values.count(name) != 0) return name;
    const auto constant = constants_.find(value);
    if (constant != constants_.end() && wanted == DType::kBF16) {
      AppendConstant(graph_, name, RoundedConstant(*constant->second));
    } else {
      LS_RETURN_IF_ERROR(AppendCast(value, wanted, name));
    }
    return name;
  }

  Graph* graph_;
  std::set<std::string> state_;
  std::map<std::string, std::shared_ptr<const Tensor>> constants_;
};

}  // namespace

absl::Status ReducePrecision(Graph* graph) { return Rewriter(graph).Run(); }

}  // namespace lockstep
