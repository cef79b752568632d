// The closed set of operations. Domain "" is ONNX, with exactly ONNX's meaning in one canonical version per op (axes,
// shapes and modes are typed attributes); domain "lockstep" holds gradients and the forms that also return what a
// backward pass needs.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_OP_TYPE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_OP_TYPE_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// Numbers are not stored anywhere: protos and fingerprints hold domain and name.
enum class OpType : uint8_t {
  // ONNX
  kAdd,
  kSub,
  kMul,
  kGemm,
  kMatMul,
  kConv,
  kConvTranspose,
  kMaxPool,
  kAveragePool,
  kGlobalAveragePool,
  kGlobalMaxPool,
  kRelu,
  kSigmoid,
  kTanh,
  kFlatten,
  kReshape,
  kExpand,
  kSqueeze,
  kUnsqueeze,
  kTranspose,
  kConcat,
  kSplit,
  kSlice,
  kTile,
  kPad,
  kGather,
  kGatherElements,
  kGatherND,
  kDepthToSpace,
  kSpaceToDepth,
  kScatterElements,
  kScatterND,
  kTrilu,
  kCumSum,
  kTopK,
  kOneHot,
  kArgMax,
  kArgMin,
  kReverseSequence,
  kSoftmax,
  kSoftmaxCrossEntropyLoss,
  kBatchNormalization,
  kDropout,
  kEinsum,
  kResize,
  kReduceSum,
  kReduceMean,
  kReduceMax,
  kReduceMin,
  kReduceProd,
  kReduceL1,
  kReduceL2,
  kReduceLogSum,
  kReduceLogSumExp,
  kReduceSumSquare,
  kLogSoftmax,
  kNegativeLogLikelihoodLoss,
  kLayerNormalization,
  kRmsNormalization,
  kGroupNormalization,
  kInstanceNormalization,
  kLpNormalization,
  // lockstep
  kScale,
  kBatchMatMul,
  kSliceGrad,
  kPadGrad,
  kGatherGrad,
  kGatherElementsGrad,
  kGatherNDGrad,
  kScatterElementsGrad,
  kScatterNDGrad,
  kConvGradInput,
  kConvGradWeight,
  kMaxPoolWithArgmax,
  kMaxPoolGrad,
  kAveragePoolGrad,
  kReluGrad,
  kSigmoidGrad,
  kTanhGrad,
  kSoftmaxGrad,
  kSoftmaxCrossEntropyLossGrad,
  kLossWeights,
  kPointwiseLoss,
  kPointwiseLossGrad,
  kBatchNormTraining,
  kBatchNormGrad,
  kBatchNormFrozenGrad,
  kDropoutTraining,
  kDropoutGrad,
  kEinsumGrad,
  kResizeGrad,
  kReduceGrad,
  kLogSoftmaxGrad,
  kNegativeLogLikelihoodLossGrad,
  kLayerNormGrad,
  kRmsNormGrad,
  kGroupNormGrad,
  kLpNormGrad,
  kMaskedSum,
  kCountCorrect,
};

// "" for ONNX, "lockstep" for our own.
absl::string_view OpDomain(OpType type);

// "Gemm", "ConvGradInput", ... unique within the domain.
absl::string_view OpName(OpType type);

// The op of that domain ("ai.onnx" is taken as "") and name; nullopt when the set has none.
std::optional<OpType> FindOp(absl::string_view domain, absl::string_view name);

// Every op, in the order of the enumeration.
absl::Span<const OpType> AllOps();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_OP_TYPE_H_
