// Attributes of every op: written and read back, and refused when they mean nothing.
#include <catch2/catch.hpp>

#include "common/graph/ops/op_test.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

std::string ParseError(OpType op, const RawAttributes& raw) {
  return std::string(ParseAttributes(op, "n", raw).status().message());
}

// The four functions give attributes of which none has its default, or none for ops that are not theirs.
OpAttributes UnusualElementwise(OpType op) {
  switch (op) {
    case OpType::kScale:
      return ScaleAttributes{0.25};
    case OpType::kLeakyRelu:
    case OpType::kLeakyReluGrad:
    case OpType::kElu:
    case OpType::kEluGrad:
    case OpType::kCelu:
    case OpType::kCeluGrad:
    case OpType::kThresholdedRelu:
    case OpType::kShrink:
    case OpType::kThresholdedReluGrad:
    case OpType::kShrinkGrad:
      return ActivationAttributes{0.25, 0.0};
    case OpType::kSelu:
    case OpType::kSeluGrad:
    case OpType::kHardSigmoid:
    case OpType::kHardSigmoidGrad:
      return ActivationAttributes{0.25, 0.75};
    case OpType::kGelu:
    case OpType::kGeluGrad:
      return GeluAttributes{true};
    case OpType::kClip:
    case OpType::kClipGrad:
      return ClipAttributes{-0.5, 6.0};
    case OpType::kMod:
      return ModAttributes{true};
    case OpType::kCast:
      return CastAttributes{DType::kI8};
    case OpType::kIsInf:
      return IsInfAttributes{false, false};
    default:
      return NoAttributes{};
  }
}

OpAttributes UnusualMovement(OpType op) {
  switch (op) {
    case OpType::kFlatten:
      return FlattenAttributes{-2};
    case OpType::kReshape:
      return ReshapeAttributes{{3, -1}, true};
    case OpType::kExpand:
      return ExpandAttributes{{3, 1}};
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      return SqueezeAttributes{{0, -1}};
    case OpType::kTranspose:
      return TransposeAttributes{{2, 0, 1}};
    case OpType::kDepthToSpace:
      return BlockAttributes{3, BlockMode::kCrd};
    case OpType::kSpaceToDepth:
      return BlockAttributes{3};
    case OpType::kConcat:
      return ConcatAttributes{-2};
    case OpType::kSplit:
      return SplitAttributes{-2, {3, 4}, 2};
    case OpType::kSlice:
      return SliceAttributes{{5, 1}, {-9, 3}, {0, -1}, {-2, 1}};
    case OpType::kSliceGrad:
      return SliceAttributes{{5, 1}, {-9, 3}, {0, -1}, {-2, 1}, {6, 6}};
    case OpType::kPad:
      return PadAttributes{{1, -2}, {-1}, PadMode::kReflect, 0.5};
    case OpType::kPadGrad:
      return PadAttributes{{1, -2}, {-1}, PadMode::kWrap, 0.5, {6, 6}};
    case OpType::kTile:
      return TileAttributes{{2, 3}};
    case OpType::kGather:
    case OpType::kGatherElements:
      return GatherAttributes{-1};
    case OpType::kGatherGrad:
    case OpType::kGatherElementsGrad:
      return GatherAttributes{-1, {6, 6}};
    case OpType::kGatherND:
      return GatherNdAttributes{1};
    case OpType::kGatherNDGrad:
      return GatherNdAttributes{1, {6, 6}};
    case OpType::kScatterElements:
    case OpType::kScatterElementsGrad:
      return ScatterAttributes{-1, ScatterReduction::kMax};
    case OpType::kScatterND:
    case OpType::kScatterNDGrad:
      return ScatterNdAttributes{ScatterReduction::kMin};
    case OpType::kArgMax:
    case OpType::kArgMin:
      return ArgAttributes{-1, false, true};
    case OpType::kTopK:
      return TopKAttributes{3, 0, false, false};
    case OpType::kOneHot:
      return OneHotAttributes{7, 0};
    case OpType::kCumSum:
      return CumSumAttributes{-1, true, true};
    case OpType::kTrilu:
      return TriluAttributes{false, -2};
    case OpType::kReverseSequence:
      return ReverseSequenceAttributes{0, 1};
    default:
      return UnusualElementwise(op);
  }
}

OpAttributes UnusualResize(OpType op) {
  ResizeAttributes resize{ResizeMode::kLinear, ResizeCoordinates::kAsymmetric, ResizeRounding::kCeil, {0.5, 1.25}};
  resize.axes = {-1, 0};
  if (op == OpType::kResize) return resize;
  resize.sizes = {2, 7};
  resize.scales.clear();
  resize.input_shape = {3, 4};
  return resize;
}

OpAttributes UnusualStatistics(OpType op) {
  switch (op) {
    case OpType::kSoftmax:
    case OpType::kSoftmaxGrad:
    case OpType::kLogSoftmax:
    case OpType::kLogSoftmaxGrad:
      return SoftmaxAttributes{2};
    case OpType::kSoftmaxCrossEntropyLoss:
    case OpType::kSoftmaxCrossEntropyLossGrad:
    case OpType::kNegativeLogLikelihoodLoss:
    case OpType::kNegativeLogLikelihoodLossGrad:
    case OpType::kLossWeights:
      return CrossEntropyAttributes{Reduction::kNone, -100, DType::kF64};
    case OpType::kPointwiseLoss:
    case OpType::kPointwiseLossGrad:
      return PointwiseLossAttributes{PointwiseLossKind::kHuber, Reduction::kSum, 0.5};
    case OpType::kBatchNormalization:
    case OpType::kBatchNormTraining:
    case OpType::kBatchNormGrad:
    case OpType::kBatchNormFrozenGrad:
      return BatchNormAttributes{1e-3, 0.5, true, true};
    case OpType::kDropout:
    case OpType::kDropoutTraining:
    case OpType::kDropoutGrad:
      return DropoutAttributes{0.25, true, ~uint64_t{5}};
    case OpType::kUniformLike:
    case OpType::kNormalLike:
      return RandomLikeAttributes{-0.5, 0.25, DType::kF64, std::vector<int64_t>{-1, 3}, ~uint64_t{5}};
    case OpType::kReduceSum:
    case OpType::kReduceMean:
    case OpType::kReduceMax:
    case OpType::kReduceMin:
    case OpType::kReduceProd:
    case OpType::kReduceL1:
    case OpType::kReduceL2:
    case OpType::kReduceLogSum:
    case OpType::kReduceLogSumExp:
    case OpType::kReduceSumSquare:
      return ReduceAttributes{{0, -1}, false, true};
    case OpType::kReduceGrad:
      return ReduceGradAttributes{ReduceKind::kLogSum, {{0, -1}, false, true}};
    case OpType::kLayerNormalization:
    case OpType::kLayerNormGrad:
    case OpType::kRmsNormalization:
    case OpType::kRmsNormGrad:
      return LayerNormAttributes{1, 1e-3};
    case OpType::kGroupNormalization:
    case OpType::kInstanceNormalization:
    case OpType::kGroupNormGrad:
      return GroupNormAttributes{2, 1e-3};
    case OpType::kLpNormalization:
    case OpType::kLpNormGrad:
      return LpNormAttributes{1, 1};
    default:
      return UnusualMovement(op);
  }
}

OpAttributes Unusual(OpType op) {
  switch (op) {
    case OpType::kGemm:
      return GemmAttributes{0.5, 2.0, true, true};
    case OpType::kBatchMatMul:
      return BatchMatMulAttributes{true, true};
    case OpType::kConv:
    case OpType::kConvGradWeight:
      return ConvAttributes{{3, 4}, {2, 3}, {1, 2, 3, 4}, {2, 2}, 2, {}, {}};
    case OpType::kConvGradInput:
      return ConvAttributes{{3, 4}, {2, 3}, {1, 2, 3, 4}, {2, 2}, 2, {8, 4, 9, 9}, {}};
    case OpType::kConvTranspose:
      return ConvAttributes{{3}, {2}, {1, 2}, {2}, 2, {}, {1}};
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
      return PoolAttributes{{3, 4}, {2, 3}, {1, 2, 2, 1}, {2, 2}, true, {}, false};
    case OpType::kMaxPoolGrad:
      return PoolAttributes{{3, 4}, {2, 3}, {1, 2, 2, 1}, {2, 2}, true, {8, 4, 9, 9}, false};
    case OpType::kAveragePool:
      return PoolAttributes{{3, 4, 5}, {2, 3, 1}, {1, 2, 2, 1, 0, 1}, {2, 2, 1}, true, {}, true};
    case OpType::kAveragePoolGrad:
      return PoolAttributes{{3}, {2}, {1, 2}, {2}, true, {8, 4, 9}, true};
    case OpType::kEinsum:
    case OpType::kEinsumGrad:
      return EinsumAttributes{"ij,j->i", 1};
    case OpType::kResize:
    case OpType::kResizeGrad:
      return UnusualResize(op);
    case OpType::kAttention:
    case OpType::kAttentionGrad:
      return AttentionAttributes{0.25, true, true, true, true, true, 3, 0.125, ~uint64_t{5}};
    case OpType::kCountCorrect:
      return CountCorrectAttributes{3};
    default:
      return UnusualStatistics(op);
  }
}

TEST_CASE("attributes: what an op writes, it reads back", "[ops]") {
  for (const OpType op : AllOps()) {
    INFO(std::string(OpName(op)));
    const OpAttributes attributes = Unusual(op);
    const absl::StatusOr<OpAttributes> parsed = ParseAttributes(op, "n", SchemaOf(op).format(attributes));
    REQUIRE(parsed.ok());
    CHECK(*parsed == attributes);
  }
}

TEST_CASE("attributes: a bound that Clip has not is left out, and comes back", "[ops]") {
  const OpSchema& clip = SchemaOf(OpType::kClip);
  CHECK(clip.format(ClipAttributes{}).empty());
  CHECK(ParseAttributes(OpType::kClip, "n", {{"max", 6.0}}).value() == OpAttributes(ClipAttributes{.max = 6.0}));
  CHECK(clip.format(ClipAttributes{.max = 6.0}).size() == 1);
}

TEST_CASE("attributes: an unknown one is refused by every op, with the node", "[ops]") {
  for (const OpType op : AllOps()) {
    RawAttributes raw = SchemaOf(op).format(Unusual(op));
    raw.emplace("zzz", int64_t{1});
    CHECK_THAT(ParseError(op, raw), Contains("'zzz'") && Contains("node 'n'"));
  }
}

TEST_CASE("attributes: wrong types and impossible values are refused", "[ops]") {
  CHECK_THAT(ParseError(OpType::kGemm, {{"alpha", int64_t{1}}}), Contains("'alpha'"));
  CHECK_THAT(ParseError(OpType::kGemm, {{"transA", int64_t{2}}}), Contains("0 or 1"));
  CHECK_THAT(ParseError(OpType::kConv, {}), Contains("kernel_shape"));
  const RawAttribute two = std::vector<int64_t>{2, 2};
  CHECK_THAT(ParseError(OpType::kConv, {{"kernel_shape", two}, {"group", int64_t{0}}}), Contains("group"));
  CHECK_THAT(ParseError(OpType::kConv, {{"kernel_shape", two}, {"strides", std::vector<int64_t>{1, 0}}}),
             Contains("strides"));
  CHECK_THAT(ParseError(OpType::kConv, {{"kernel_shape", two}, {"pads", std::vector<int64_t>{0, 0, 0, -1}}}),
             Contains("pads"));
  CHECK_THAT(ParseError(OpType::kConv, {{"kernel_shape", std::vector<int64_t>{2, 2, 2, 2}}}),
             Contains("three spatial"));
  CHECK_THAT(ParseError(OpType::kConv, {{"kernel_shape", two}, {"strides", std::vector<int64_t>{2}}}),
             Contains("expected 2"));
  CHECK(ParseError(OpType::kMaxPool, {{"kernel_shape", std::vector<int64_t>{2}}}).empty());
  CHECK_THAT(ParseError(OpType::kEinsum, {}), Contains("equation"));
  CHECK_THAT(ParseError(OpType::kResize, {}), Contains("either scales or sizes"));
  CHECK_THAT(ParseError(OpType::kResize, {{"mode", std::string("cubic")}}), Contains("'cubic'"));
  CHECK_THAT(ParseError(OpType::kResize, {{"scales", std::vector<double>{0.0}}}), Contains("positive"));
  CHECK_THAT(ParseError(OpType::kMaxPool, {{"kernel_shape", two}, {"pads", std::vector<int64_t>{2, 0, 0, 0}}}),
             Contains("padding"));
  CHECK_THAT(ParseError(OpType::kDropout, {{"ratio", 1.0}}), Contains("ratio"));
  CHECK_THAT(ParseError(OpType::kBatchNormalization, {{"momentum", 1.5}}), Contains("momentum"));
  CHECK_THAT(ParseError(OpType::kSoftmaxCrossEntropyLoss, {{"reduction", std::string("most")}}), Contains("most"));
  CHECK_THAT(ParseError(OpType::kPointwiseLoss, {{"kind", std::string("l3")}}), Contains("l3"));
  CHECK_THAT(ParseError(OpType::kPointwiseLoss, {{"delta", 0.0}}), Contains("delta"));
  CHECK_THAT(ParseError(OpType::kReduceGrad, {{"of", std::string("median")}}), Contains("median"));
  CHECK_THAT(ParseError(OpType::kLayerNormalization, {{"epsilon", -1.0}}), Contains("epsilon"));
  CHECK_THAT(ParseError(OpType::kLpNormalization, {{"p", int64_t{3}}}), Contains("p is 3"));
  CHECK_THAT(ParseError(OpType::kGelu, {{"approximate", std::string("some")}}), Contains("some"));
  CHECK_THAT(ParseError(OpType::kCelu, {{"alpha", 0.0}}), Contains("above 0"));
  CHECK_THAT(ParseError(OpType::kCast, {}), Contains("'to' is missing"));
  CHECK_THAT(ParseError(OpType::kCast, {{"to", int64_t{8}}}), Contains("'to'") && Contains("number 8"));
  CHECK_THAT(ParseError(OpType::kRelu, {{"alpha", 1.0}}), Contains("alpha"));
  CHECK_THAT(ParseError(OpType::kConcat, {}), Contains("axis"));
  CHECK_THAT(ParseError(OpType::kScatterND, {{"reduction", std::string("mean")}}), Contains("mean"));
  CHECK_THAT(ParseError(OpType::kTopK, {}), Contains("k has to be known"));
  CHECK_THAT(ParseError(OpType::kOneHot, {{"depth", int64_t{0}}}), Contains("depth"));
  CHECK_THAT(ParseError(OpType::kReverseSequence, {{"batch_axis", int64_t{2}}}), Contains("batch_axis is 2"));
  CHECK_THAT(ParseError(OpType::kDepthToSpace, {{"blocksize", int64_t{0}}}), Contains("blocksize"));
  CHECK_THAT(ParseError(OpType::kDepthToSpace, {{"blocksize", int64_t{2}}, {"mode", std::string("RDC")}}),
             Contains("RDC"));
  CHECK_THAT(ParseError(OpType::kPad, {{"mode", std::string("mirror")}}), Contains("mirror"));
  CHECK_THAT(ParseError(OpType::kSlice, {{"starts", two}, {"ends", two}, {"steps", std::vector<int64_t>{1, 0}}}),
             Contains("step of 0"));
  CHECK_THAT(ParseError(OpType::kSlice, {{"starts", two}, {"ends", std::vector<int64_t>{1}}}),
             Contains("equally many"));
}

TEST_CASE("ops: domain and name find the op again", "[ops]") {
  for (const OpType op : AllOps()) {
    CHECK(SchemaOf(op).type == op);
    CHECK(FindOp(OpDomain(op), OpName(op)) == op);
  }
  CHECK(FindOp("ai.onnx", "Gemm") == OpType::kGemm);
  CHECK_FALSE(FindOp("", "ConvGradInput").has_value());
  CHECK_FALSE(FindOp("", "Gem").has_value());
}

}  // namespace
}  // namespace lockstep
