#include "common/graph/ops/op_type.h"

#include <array>

namespace lockstep {
namespace {

struct Row {
  OpType type;
  absl::string_view domain;
  absl::string_view name;
};

constexpr absl::string_view kOnnx = "";
constexpr absl::string_view kOwn = "lockstep";

// In the order of the enumeration, so that an OpType is an index.
constexpr std::array kRows = {
    Row{OpType::kAdd, kOnnx, "Add"},
    Row{OpType::kSub, kOnnx, "Sub"},
    Row{OpType::kMul, kOnnx, "Mul"},
    Row{OpType::kGemm, kOnnx, "Gemm"},
    Row{OpType::kMatMul, kOnnx, "MatMul"},
    Row{OpType::kConv, kOnnx, "Conv"},
    Row{OpType::kConvTranspose, kOnnx, "ConvTranspose"},
    Row{OpType::kMaxPool, kOnnx, "MaxPool"},
    Row{OpType::kAveragePool, kOnnx, "AveragePool"},
    Row{OpType::kGlobalAveragePool, kOnnx, "GlobalAveragePool"},
    Row{OpType::kGlobalMaxPool, kOnnx, "GlobalMaxPool"},
    Row{OpType::kRelu, kOnnx, "Relu"},
    Row{OpType::kSigmoid, kOnnx, "Sigmoid"},
    Row{OpType::kTanh, kOnnx, "Tanh"},
    Row{OpType::kFlatten, kOnnx, "Flatten"},
    Row{OpType::kReshape, kOnnx, "Reshape"},
    Row{OpType::kExpand, kOnnx, "Expand"},
    Row{OpType::kSqueeze, kOnnx, "Squeeze"},
    Row{OpType::kUnsqueeze, kOnnx, "Unsqueeze"},
    Row{OpType::kTranspose, kOnnx, "Transpose"},
    Row{OpType::kConcat, kOnnx, "Concat"},
    Row{OpType::kSplit, kOnnx, "Split"},
    Row{OpType::kSlice, kOnnx, "Slice"},
    Row{OpType::kTile, kOnnx, "Tile"},
    Row{OpType::kPad, kOnnx, "Pad"},
    Row{OpType::kGather, kOnnx, "Gather"},
    Row{OpType::kGatherElements, kOnnx, "GatherElements"},
    Row{OpType::kGatherND, kOnnx, "GatherND"},
    Row{OpType::kDepthToSpace, kOnnx, "DepthToSpace"},
    Row{OpType::kSpaceToDepth, kOnnx, "SpaceToDepth"},
    Row{OpType::kScatterElements, kOnnx, "ScatterElements"},
    Row{OpType::kScatterND, kOnnx, "ScatterND"},
    Row{OpType::kTrilu, kOnnx, "Trilu"},
    Row{OpType::kCumSum, kOnnx, "CumSum"},
    Row{OpType::kTopK, kOnnx, "TopK"},
    Row{OpType::kOneHot, kOnnx, "OneHot"},
    Row{OpType::kArgMax, kOnnx, "ArgMax"},
    Row{OpType::kArgMin, kOnnx, "ArgMin"},
    Row{OpType::kReverseSequence, kOnnx, "ReverseSequence"},
    Row{OpType::kSoftmax, kOnnx, "Softmax"},
    Row{OpType::kSoftmaxCrossEntropyLoss, kOnnx, "SoftmaxCrossEntropyLoss"},
    Row{OpType::kBatchNormalization, kOnnx, "BatchNormalization"},
    Row{OpType::kDropout, kOnnx, "Dropout"},
    Row{OpType::kEinsum, kOnnx, "Einsum"},
    Row{OpType::kResize, kOnnx, "Resize"},
    Row{OpType::kReduceSum, kOnnx, "ReduceSum"},
    Row{OpType::kReduceMean, kOnnx, "ReduceMean"},
    Row{OpType::kReduceMax, kOnnx, "ReduceMax"},
    Row{OpType::kReduceMin, kOnnx, "ReduceMin"},
    Row{OpType::kReduceProd, kOnnx, "ReduceProd"},
    Row{OpType::kReduceL1, kOnnx, "ReduceL1"},
    Row{OpType::kReduceL2, kOnnx, "ReduceL2"},
    Row{OpType::kReduceLogSum, kOnnx, "ReduceLogSum"},
    Row{OpType::kReduceLogSumExp, kOnnx, "ReduceLogSumExp"},
    Row{OpType::kReduceSumSquare, kOnnx, "ReduceSumSquare"},
    Row{OpType::kLogSoftmax, kOnnx, "LogSoftmax"},
    Row{OpType::kNegativeLogLikelihoodLoss, kOnnx, "NegativeLogLikelihoodLoss"},
    Row{OpType::kLayerNormalization, kOnnx, "LayerNormalization"},
    Row{OpType::kRmsNormalization, kOnnx, "RMSNormalization"},
    Row{OpType::kGroupNormalization, kOnnx, "GroupNormalization"},
    Row{OpType::kInstanceNormalization, kOnnx, "InstanceNormalization"},
    Row{OpType::kLpNormalization, kOnnx, "LpNormalization"},
    Row{OpType::kScale, kOwn, "Scale"},
    Row{OpType::kBatchMatMul, kOwn, "BatchMatMul"},
    Row{OpType::kSliceGrad, kOwn, "SliceGrad"},
    Row{OpType::kPadGrad, kOwn, "PadGrad"},
    Row{OpType::kGatherGrad, kOwn, "GatherGrad"},
    Row{OpType::kGatherElementsGrad, kOwn, "GatherElementsGrad"},
    Row{OpType::kGatherNDGrad, kOwn, "GatherNDGrad"},
    Row{OpType::kScatterElementsGrad, kOwn, "ScatterElementsGrad"},
    Row{OpType::kScatterNDGrad, kOwn, "ScatterNDGrad"},
    Row{OpType::kConvGradInput, kOwn, "ConvGradInput"},
    Row{OpType::kConvGradWeight, kOwn, "ConvGradWeight"},
    Row{OpType::kMaxPoolWithArgmax, kOwn, "MaxPoolWithArgmax"},
    Row{OpType::kMaxPoolGrad, kOwn, "MaxPoolGrad"},
    Row{OpType::kAveragePoolGrad, kOwn, "AveragePoolGrad"},
    Row{OpType::kReluGrad, kOwn, "ReluGrad"},
    Row{OpType::kSigmoidGrad, kOwn, "SigmoidGrad"},
    Row{OpType::kTanhGrad, kOwn, "TanhGrad"},
    Row{OpType::kSoftmaxGrad, kOwn, "SoftmaxGrad"},
    Row{OpType::kSoftmaxCrossEntropyLossGrad, kOwn, "SoftmaxCrossEntropyLossGrad"},
    Row{OpType::kLossWeights, kOwn, "LossWeights"},
    Row{OpType::kPointwiseLoss, kOwn, "PointwiseLoss"},
    Row{OpType::kPointwiseLossGrad, kOwn, "PointwiseLossGrad"},
    Row{OpType::kBatchNormTraining, kOwn, "BatchNormTraining"},
    Row{OpType::kBatchNormGrad, kOwn, "BatchNormGrad"},
    Row{OpType::kBatchNormFrozenGrad, kOwn, "BatchNormFrozenGrad"},
    Row{OpType::kDropoutTraining, kOwn, "DropoutTraining"},
    Row{OpType::kDropoutGrad, kOwn, "DropoutGrad"},
    Row{OpType::kEinsumGrad, kOwn, "EinsumGrad"},
    Row{OpType::kResizeGrad, kOwn, "ResizeGrad"},
    Row{OpType::kReduceGrad, kOwn, "ReduceGrad"},
    Row{OpType::kLogSoftmaxGrad, kOwn, "LogSoftmaxGrad"},
    Row{OpType::kNegativeLogLikelihoodLossGrad, kOwn, "NegativeLogLikelihoodLossGrad"},
    Row{OpType::kLayerNormGrad, kOwn, "LayerNormGrad"},
    Row{OpType::kRmsNormGrad, kOwn, "RMSNormGrad"},
    Row{OpType::kGroupNormGrad, kOwn, "GroupNormGrad"},
    Row{OpType::kLpNormGrad, kOwn, "LpNormGrad"},
    Row{OpType::kMaskedSum, kOwn, "MaskedSum"},
    Row{OpType::kCountCorrect, kOwn, "CountCorrect"},
};

constexpr bool RowsFollowTheEnumeration() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<size_t>(kRows[i].type) != i) return false;
  }
  return kRows.back().type == OpType::kCountCorrect;
}
static_assert(RowsFollowTheEnumeration());

constexpr auto kTypes = [] {
  std::array<OpType, kRows.size()> types{};
  for (size_t i = 0; i < types.size(); ++i) types[i] = kRows[i].type;
  return types;
}();

}  // namespace

absl::string_view OpDomain(OpType type) { return kRows[static_cast<size_t>(type)].domain; }

absl::string_view OpName(OpType type) { return kRows[static_cast<size_t>(type)].name; }

std::optional<OpType> FindOp(absl::string_view domain, absl::string_view name) {
  if (domain == "ai.onnx") domain = kOnnx;
  for (const Row& row : kRows) {
    if (row.domain == domain && row.name == name) return row.type;
  }
  return std::nullopt;
}

absl::Span<const OpType> AllOps() { return kTypes; }

}  // namespace lockstep
