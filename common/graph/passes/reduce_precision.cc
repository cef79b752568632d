#include "common/graph/passes/reduce_precision.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
    case OpType::kTan:
    case OpType::kAsin:
    case OpType::kAcos:
    case OpType::kAtan:
    case OpType::kSinh:
    case OpType::kCosh:
    case OpType::kAsinh:
    case OpType::kAcosh:
    case OpType::kAtanh:
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
    case OpType::kUniformLike:
    case OpType::kNormalLike:
      return Treatment::kStay;
    default:
      return Treatment::kFollow;
  }
}

constexpr double kLargestBf16 = 0x1.fep127;

// To the nearest, and the largest finite number where that would be infinite.
Tensor RoundedConstant(const Tensor& value) {
  Tensor rounded = *Tensor::Create(DType::kBF16, value.shape());
  auto* to = reinterpret_cast<Bf16*>(rounded.data());
  const absl::Span<const float> from = value.elements<float>();
  for (size_t i = 0; i < from.size(); ++i) {
    to[i] = Bf16(from[i]);
    if (std::isfinite(from[i]) && !std::isfinite(to[i]))
      to[i] = Bf16(std::copysign(static_cast<float>(kLargestBf16), from[i]));
  }
  return rounded;
}

bool OnlyMoves(OpType op) {
  switch (op) {
    case OpType::kTranspose:
    case OpType::kReshape:
    case OpType::kFlatten:
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      return true;
    default:
      return false;
  }
}

class Rewriter {
 public:
  explicit Rewriter(Graph* graph) : graph_(graph) {
    for (const Variable& variable : graph->variables) learned_.insert(variable.name);
    state_ = learned_;
    for (const GraphInput& input : graph->inputs) inputs_.insert(input.name);
    for (const Constant& constant : graph->constants) constants_.emplace(constant.name, constant.value);
  }

  absl::Status Run() {
    std::vector<Node> nodes = std::move(graph_->nodes);
    graph_->nodes.clear();
    for (const Node& node : nodes) {
      for (const std::string& output : node.outputs) {
        const auto value = graph_->values.find(output);
        if (value == graph_->values.end()) continue;
        if (NumElements(value->second.shape) <= 1) scalars_.insert(output);
        graph_->values.erase(value);
      }
    }
    for (Node& node : nodes) LS_RETURN_IF_ERROR(Rewrite(std::move(node)));
    graph_->nodes.insert(graph_->nodes.begin(), std::make_move_iterator(front_.begin()),
                         std::make_move_iterator(front_.end()));
    for (const std::string& output : graph_->outputs) {
      if (TypeOf(output) == DType::kBF16) {
        return absl::InternalError(absl::StrCat("the graph's output '", output, "' became BF16"));
      }
    }
    return absl::OkStatus();
  }

 private:
  DType TypeOf(const std::string& value) const { return graph_->values.at(value).dtype; }
  bool IsLearned(const std::string& value) const { return learned_.count(value) != 0; }

  bool IsOutput(const std::string& value) const {
    return std::find(graph_->outputs.begin(), graph_->outputs.end(), value) != graph_->outputs.end();
  }

  bool ReadsBf16(const Node& node, const WideOperands& wide) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].empty() && !wide.input(i) && TypeOf(node.inputs[i]) == DType::kBF16) return true;
    }
    return false;
  }

  // What the node's operands become, where they are not such as stay F32.
  DType OperandType(const Node& node, const WideOperands& wide) const {
    const Treatment treatment = TreatmentOf(node);
    const std::string& result = node.outputs[0];
    if (treatment == Treatment::kWide) return DType::kF32;
    // Of a cross entropy the result is F32 in any case.
    if (!wide.output(0) && (scalars_.count(result) != 0 || IsOutput(result))) return DType::kF32;
    const bool learned =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](const auto& v) { return IsLearned(v); });
    if (treatment == Treatment::kNarrow && learned) return DType::kBF16;
    return ReadsBf16(node, wide) ? DType::kBF16 : DType::kF32;
  }

  absl::Status Append(Node node) {
    const bool learned =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](const auto& v) { return IsLearned(v); });
    if (learned) learned_.insert(node.outputs.begin(), node.outputs.end());
    return AppendNode(graph_, std::move(node));
  }

  // In front of everything else: of parameters alone.
  absl::Status AppendInFront(Node node) {
    LS_RETURN_IF_ERROR(Append(std::move(node)));
    front_.push_back(std::move(graph_->nodes.back()));
    graph_->nodes.pop_back();
    return absl::OkStatus();
  }

  absl::Status Rewrite(Node node) {
    const Treatment treatment = TreatmentOf(node);
    if (treatment == Treatment::kStay) return Append(std::move(node));
    if (treatment == Treatment::kGather && state_.count(node.inputs[0]) != 0) return RewriteGather(std::move(node));
    if (OnlyMoves(node.op) && (state_.count(node.inputs[0]) != 0 || moved_.count(node.inputs[0]) != 0)) {
      moved_.emplace(node.outputs[0], node);
      return Append(std::move(node));
    }
    const WideOperands wide = WideOperandsOf(node.op);
    const DType operands = OperandType(node, wide);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      LS_ASSIGN_OR_RETURN(node.inputs[i], As(wide.input(i) ? DType::kF32 : operands, node.inputs[i]));
    }
    return Append(std::move(node));
  }

  absl::Status RewriteGather(Node node) {
    if (TypeOf(node.inputs[0]) != DType::kF32) return Append(std::move(node));
    const std::string name = node.outputs[0];
    const std::string gathered = absl::StrCat("lockstep.gathered.", name);
    if (scalars_.count(name) != 0 || IsOutput(name)) return Append(std::move(node));
    node.outputs[0] = gathered;
    LS_RETURN_IF_ERROR(Append(std::move(node)));
    return Append(CastOf(gathered, DType::kBF16, name));
  }

  static Node CastOf(const std::string& from, DType to, const std::string& name) {
    return {absl::StrCat("lockstep.cast.", name), OpType::kCast, {from}, {name}, CastAttributes{to}};
  }

  // The value itself, or as `wanted` where it is the other one of F32 and BF16.
  absl::StatusOr<std::string> As(DType wanted, const std::string& value) {
    const DType dtype = TypeOf(value);
    if (dtype == wanted || (dtype != DType::kF32 && dtype != DType::kBF16)) return value;
    std::string name = absl::StrCat(wanted == DType::kBF16 ? "lockstep.bf16." : "lockstep.f32.", value);
    if (graph_->values.count(name) != 0) return name;
    LS_RETURN_IF_ERROR(wanted == DType::kBF16 ? AppendNarrowed(value, name) : Append(CastOf(value, wanted, name)));
    return name;
  }

  absl::Status AppendNarrowed(const std::string& value, const std::string& name) {
    if (const auto constant = constants_.find(value); constant != constants_.end()) {
      AppendConstant(graph_, name, RoundedConstant(*constant->second));
      return absl::OkStatus();
    }
    if (state_.count(value) != 0) return AppendInFront(CastOf(value, DType::kBF16, name));
    if (const auto moved = moved_.find(value); moved != moved_.end()) {
      Node copy = moved->second;
      copy.name = name;
      copy.outputs[0] = name;
      LS_ASSIGN_OR_RETURN(copy.inputs[0], As(DType::kBF16, copy.inputs[0]));
      return AppendInFront(std::move(copy));
    }
    if (IsLearned(value) || inputs_.count(value) != 0) return Append(CastOf(value, DType::kBF16, name));
    const std::string bounded = absl::StrCat("lockstep.bounded.", value);
    LS_RETURN_IF_ERROR(Append(
        {bounded, OpType::kClip, {value}, {bounded}, ClipAttributes{.min = -kLargestBf16, .max = kLargestBf16}}));
    return Append(CastOf(bounded, DType::kBF16, name));
  }

  Graph* graph_;
  std::set<std::string> state_;
  std::set<std::string> inputs_;
  std::set<std::string> learned_;  // what depends on the state
  std::set<std::string> scalars_;  // results of one element
  std::map<std::string, Node> moved_;
  std::map<std::string, std::shared_ptr<const Tensor>> constants_;
  std::vector<Node> front_;
};

}  // namespace

absl::Status ReducePrecision(Graph* graph) { return Rewriter(graph).Run(); }

}  // namespace lockstep
