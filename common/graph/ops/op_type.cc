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
    Row{OpType::kDiv, kOnnx, "Div"},
    Row{OpType::kMod, kOnnx, "Mod"},
    Row{OpType::kPow, kOnnx, "Pow"},
    Row{OpType::kMin, kOnnx, "Min"},
    Row{OpType::kMax, kOnnx, "Max"},
    Row{OpType::kNeg, kOnnx, "Neg"},
    Row{OpType::kAbs, kOnnx, "Abs"},
    Row{OpType::kSign, kOnnx, "Sign"},
    Row{OpType::kReciprocal, kOnnx, "Reciprocal"},
    Row{OpType::kSqrt, kOnnx, "Sqrt"},
    Row{OpType::kExp, kOnnx, "Exp"},
    Row{OpType::kLog, kOnnx, "Log"},
    Row{OpType::kErf, kOnnx, "Erf"},
    Row{OpType::kSin, kOnnx, "Sin"},
    Row{OpType::kCos, kOnnx, "Cos"},
    Row{OpType::kTan, kOnnx, "Tan"},
    Row{OpType::kAsin, kOnnx, "Asin"},
    Row{OpType::kAcos, kOnnx, "Acos"},
    Row{OpType::kAtan, kOnnx, "Atan"},
    Row{OpType::kSinh, kOnnx, "Sinh"},
    Row{OpType::kCosh, kOnnx, "Cosh"},
    Row{OpType::kAsinh, kOnnx, "Asinh"},
    Row{OpType::kAcosh, kOnnx, "Acosh"},
    Row{OpType::kAtanh, kOnnx, "Atanh"},
    Row{OpType::kFloor, kOnnx, "Floor"},
    Row{OpType::kCeil, kOnnx, "Ceil"},
    Row{OpType::kRound, kOnnx, "Round"},
    Row{OpType::kIdentity, kOnnx, "Identity"},
    Row{OpType::kCast, kOnnx, "Cast"},
    Row{OpType::kWhere, kOnnx, "Where"},
    Row{OpType::kEqual, kOnnx, "Equal"},
    Row{OpType::kGreater, kOnnx, "Greater"},
    Row{OpType::kGreaterOrEqual, kOnnx, "GreaterOrEqual"},
    Row{OpType::kLess, kOnnx, "Less"},
    Row{OpType::kLessOrEqual, kOnnx, "LessOrEqual"},
    Row{OpType::kAnd, kOnnx, "And"},
    Row{OpType::kOr, kOnnx, "Or"},
    Row{OpType::kXor, kOnnx, "Xor"},
    Row{OpType::kNot, kOnnx, "Not"},
    Row{OpType::kIsNaN, kOnnx, "IsNaN"},
    Row{OpType::kIsInf, kOnnx, "IsInf"},
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
    Row{OpType::kLeakyRelu, kOnnx, "LeakyRelu"},
    Row{OpType::kPRelu, kOnnx, "PRelu"},
    Row{OpType::kElu, kOnnx, "Elu"},
    Row{OpType::kSelu, kOnnx, "Selu"},
    Row{OpType::kCelu, kOnnx, "Celu"},
    Row{OpType::kHardSigmoid, kOnnx, "HardSigmoid"},
    Row{OpType::kHardSwish, kOnnx, "HardSwish"},
    Row{OpType::kThresholdedRelu, kOnnx, "ThresholdedRelu"},
    Row{OpType::kShrink, kOnnx, "Shrink"},
    Row{OpType::kSoftplus, kOnnx, "Softplus"},
    Row{OpType::kSoftsign, kOnnx, "Softsign"},
    Row{OpType::kMish, kOnnx, "Mish"},
    Row{OpType::kGelu, kOnnx, "Gelu"},
    Row{OpType::kClip, kOnnx, "Clip"},
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
    Row{OpType::kPowGrad, kOwn, "PowGrad"},
    Row{OpType::kMinGrad, kOwn, "MinGrad"},
    Row{OpType::kMaxGrad, kOwn, "MaxGrad"},
    Row{OpType::kErfGrad, kOwn, "ErfGrad"},
    Row{OpType::kAsinGrad, kOwn, "AsinGrad"},
    Row{OpType::kAtanGrad, kOwn, "AtanGrad"},
    Row{OpType::kAsinhGrad, kOwn, "AsinhGrad"},
    Row{OpType::kAcoshGrad, kOwn, "AcoshGrad"},
    Row{OpType::kAtanhGrad, kOwn, "AtanhGrad"},
    Row{OpType::kWhereGrad, kOwn, "WhereGrad"},
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
    Row{OpType::kLeakyReluGrad, kOwn, "LeakyReluGrad"},
    Row{OpType::kPReluGrad, kOwn, "PReluGrad"},
    Row{OpType::kEluGrad, kOwn, "EluGrad"},
    Row{OpType::kSeluGrad, kOwn, "SeluGrad"},
    Row{OpType::kCeluGrad, kOwn, "CeluGrad"},
    Row{OpType::kHardSigmoidGrad, kOwn, "HardSigmoidGrad"},
    Row{OpType::kHardSwishGrad, kOwn, "HardSwishGrad"},
    Row{OpType::kThresholdedReluGrad, kOwn, "ThresholdedReluGrad"},
    Row{OpType::kShrinkGrad, kOwn, "ShrinkGrad"},
    Row{OpType::kSoftsignGrad, kOwn, "SoftsignGrad"},
    Row{OpType::kMishGrad, kOwn, "MishGrad"},
    Row{OpType::kGeluGrad, kOwn, "GeluGrad"},
    Row{OpType::kClipGrad, kOwn, "ClipGrad"},
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
    Row{OpType::kUniformLike, kOwn, "UniformLike"},
    Row{OpType::kNormalLike, kOwn, "NormalLike"},
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
    Row{OpType::kAttention, kOwn, "Attention"},
    Row{OpType::kAttentionGrad, kOwn, "AttentionGrad"},
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
