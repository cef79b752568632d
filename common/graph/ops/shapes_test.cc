// Shape inference of every family: what ONNX says comes out, and what does not fit is refused with the reason.
#include <catch2/catch.hpp>

#include "common/graph/ops/op_test.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("elementwise: shapes broadcast as in numpy", "[ops]") {
  CHECK(InferShape(OpType::kAdd, {F32({2, 1, 4}), F32({3, 1})}) == Shape{2, 3, 4});
  CHECK(InferShape(OpType::kMul, {F32({}), F32({5})}) == Shape{5});
  CHECK(InferShape(OpType::kSub, {F32({0, 3}), F32({1, 3})}) == Shape{0, 3});
  CHECK_THAT(InferError(OpType::kAdd, {F32({2, 3}), F32({4})}), Contains("node 'n' (Add)") && Contains("3 against 4"));
  CHECK_THAT(InferError(OpType::kAdd, {F32({2}), {DType::kF64, {2}}}), Contains("F64"));
  CHECK(Infer(OpType::kMul, {I64({2}), I64({1})}).value()[0] == I64({2}));
  CHECK_THAT(InferError(OpType::kMul, {{DType::kBool, {2}}, {DType::kBool, {2}}}), Contains("BOOL"));
  CHECK_THAT(InferError(OpType::kAdd, {F32({2})}), Contains("1 inputs"));
}

TEST_CASE("elementwise: types that an op does not compute with are refused", "[ops]") {
  CHECK(InferShape(OpType::kMax, {F32({2, 1}), F32({3}), F32({1, 1, 1})}) == Shape{1, 2, 3});
  CHECK_THAT(InferError(OpType::kMin, {F32({2}), F32({2}), I64({2})}), Contains("input 2 is I64"));
  CHECK(Infer(OpType::kPow, {I64({2}), F32({2})}).value()[0] == I64({2}));
  CHECK_THAT(InferError(OpType::kPow, {F32({2}), {DType::kI8, {2}}}), Contains("I8"));
  CHECK_THAT(InferError(OpType::kMod, {F32({2}), F32({2})}, ModAttributes{false}), Contains("fmod = 1"));
  CHECK(InferShape(OpType::kMod, {I64({2}), I64({2})}, ModAttributes{false}) == Shape{2});
  CHECK_THAT(InferError(OpType::kNeg, {{DType::kU8, {2}}}), Contains("U8"));
  CHECK_THAT(InferError(OpType::kSqrt, {I64({2})}), Contains("I64"));
}

TEST_CASE("activation: a slope broadcasts to X, never the other way round", "[ops]") {
  CHECK(InferShape(OpType::kPRelu, {F32({2, 3, 4}), F32({3, 1})}) == Shape{2, 3, 4});
  CHECK_THAT(InferError(OpType::kPRelu, {F32({3, 1}), F32({3, 4})}), Contains("slope"));
  CHECK(Infer(OpType::kClip, {I64({3})}, ClipAttributes{}).value()[0] == I64({3}));
  CHECK_THAT(InferError(OpType::kGelu, {I64({3})}, GeluAttributes{}), Contains("I64"));
}

TEST_CASE("logic: results are bools, and conditions have to be", "[ops]") {
  const ValueInfo flags = {DType::kBool, {3}};
  CHECK(Infer(OpType::kLess, {F32({2, 1}), F32({3})}).value()[0] == ValueInfo{DType::kBool, {2, 3}});
  CHECK(Infer(OpType::kEqual, {flags, flags}).value()[0] == flags);
  CHECK_THAT(InferError(OpType::kGreater, {flags, flags}), Contains("BOOL"));
  CHECK_THAT(InferError(OpType::kAnd, {F32({3}), F32({3})}), Contains("Cast"));
  CHECK(Infer(OpType::kIsNaN, {F32({3})}).value()[0] == flags);
  CHECK(Infer(OpType::kCast, {flags}, CastAttributes{DType::kI64}).value()[0] == I64({3}));
  CHECK(InferShape(OpType::kWhere, {flags, F32({2, 1}), F32({})}) == Shape{2, 3});
  CHECK_THAT(InferError(OpType::kWhere, {F32({3}), F32({3}), F32({3})}), Contains("condition"));
  CHECK_THAT(InferError(OpType::kWhere, {flags, F32({3}), I64({3})}), Contains("same type"));
}

TEST_CASE("gemm: transposes and the broadcast of C", "[ops]") {
  CHECK(InferShape(OpType::kGemm, {F32({2, 3}), F32({3, 4}), F32({4})}, GemmAttributes{}) == Shape{2, 4});
  CHECK(InferShape(OpType::kGemm, {F32({3, 2}), F32({4, 3})}, GemmAttributes{1, 1, true, true}) == Shape{2, 4});
  CHECK_THAT(InferError(OpType::kGemm, {F32({2, 3}), F32({4, 3})}, GemmAttributes{}),
             Contains("3 columns") && Contains("4 rows"));
  CHECK_THAT(InferError(OpType::kGemm, {F32({2, 3}), F32({3, 4}), F32({2, 2, 4})}, GemmAttributes{}), Contains("C is"));
  CHECK_THAT(InferError(OpType::kGemm, {F32({2, 2, 3}), F32({3, 4})}, GemmAttributes{}), Contains("matrices"));
}

TEST_CASE("matmul: ranks of one, and leading dimensions that broadcast", "[ops]") {
  CHECK(InferShape(OpType::kMatMul, {F32({3}), F32({3})}) == Shape{});
  CHECK(InferShape(OpType::kMatMul, {F32({3}), F32({2, 3, 4})}) == Shape{2, 4});
  CHECK(InferShape(OpType::kMatMul, {F32({2, 4, 3}), F32({3})}) == Shape{2, 4});
  CHECK(InferShape(OpType::kMatMul, {F32({5, 1, 4, 3}), F32({2, 3, 6})}) == Shape{5, 2, 4, 6});
  CHECK_THAT(InferError(OpType::kMatMul, {F32({}), F32({3})}), Contains("scalar"));
  CHECK_THAT(InferError(OpType::kMatMul, {F32({2, 3}), F32({4, 3})}), Contains("4 rows"));
  CHECK(InferShape(OpType::kBatchMatMul, {F32({2, 3, 4}), F32({5, 3})}, BatchMatMulAttributes{true, true}) ==
        Shape{2, 4, 5});
}

ConvAttributes Kernel(int64_t h, int64_t w) {
  ConvAttributes conv;
  conv.kernel_shape = {h, w};
  return conv;
}

TEST_CASE("conv: strides, pads, dilations and groups", "[ops]") {
  ConvAttributes conv = Kernel(3, 3);
  CHECK(InferShape(OpType::kConv, {F32({2, 4, 8, 9}), F32({6, 4, 3, 3}), F32({6})}, conv) == Shape{2, 6, 6, 7});
  conv.strides = {2, 3};
  conv.pads = {1, 0, 2, 1};
  conv.dilations = {1, 2};
  conv.group = 2;
  CHECK(InferShape(OpType::kConv, {F32({2, 4, 8, 9}), F32({6, 2, 3, 3})}, conv) == Shape{2, 6, 5, 2});
  CHECK_THAT(InferError(OpType::kConv, {F32({2, 4, 8, 9}), F32({6, 4, 3, 3})}, conv), Contains("4 channels"));
  CHECK_THAT(InferError(OpType::kConv, {F32({2, 4, 8, 9}), F32({6, 2, 5, 3})}, conv), Contains("kernel_shape"));
  CHECK_THAT(InferError(OpType::kConv, {F32({2, 8, 9}), F32({6, 4, 3, 3})}, Kernel(3, 3)), Contains("2 spatial"));
  CHECK_THAT(InferError(OpType::kConv, {F32({2, 4, 2, 9}), F32({6, 4, 3, 3})}, Kernel(3, 3)), Contains("does not fit"));
  CHECK_THAT(InferError(OpType::kConv, {F32({2, 4, 8, 9}), F32({6, 4, 3, 3}), F32({5})}, Kernel(3, 3)),
             Contains("B is"));
}

TEST_CASE("conv: one and three dimensions, and transposed", "[ops]") {
  const ConvAttributes line{{3}, {2}, {1, 1}, {1}, 1, {}, {}};
  CHECK(InferShape(OpType::kConv, {F32({2, 4, 9}), F32({6, 4, 3})}, line) == Shape{2, 6, 5});
  const ConvAttributes cube{{3, 2, 1}, {1, 2, 1}, {0, 0, 0, 1, 0, 0}, {1, 1, 1}, 2, {}, {}};
  CHECK(InferShape(OpType::kConv, {F32({2, 4, 6, 6, 6}), F32({6, 2, 3, 2, 1})}, cube) == Shape{2, 6, 5, 3, 6});
  ConvAttributes back = line;
  CHECK(InferShape(OpType::kConvTranspose, {F32({2, 6, 5}), F32({6, 4, 3}), F32({4})}, back) == Shape{2, 4, 9});
  back.output_padding = {1};
  CHECK(InferShape(OpType::kConvTranspose, {F32({2, 6, 5}), F32({6, 4, 3})}, back) == Shape{2, 4, 10});
  back.output_padding = {2};
  CHECK_THAT(InferError(OpType::kConvTranspose, {F32({2, 6, 5}), F32({6, 4, 3})}, back), Contains("stride of 2"));
  CHECK_THAT(InferError(OpType::kConvTranspose, {F32({2, 6, 5}), F32({5, 4, 3})}, line), Contains("6 channels"));
}

TEST_CASE("einsum: letters, ellipses and results without an arrow", "[ops]") {
  const auto shape = [](const char* equation, const std::vector<ValueInfo>& inputs) {
    return InferShape(OpType::kEinsum, inputs, EinsumAttributes{equation});
  };
  CHECK(shape("bij, bjk -> bik", {F32({2, 3, 4}), F32({2, 4, 5})}) == Shape{2, 3, 5});
  CHECK(shape("...ii->...i", {F32({2, 3, 3})}) == Shape{2, 3});
  CHECK(shape("ba,cb", {F32({2, 3}), F32({4, 2})}) == Shape{3, 4});
  CHECK(shape("i,i->", {F32({2}), F32({2})}).empty());
  CHECK(shape("...i,...i->...", {F32({5, 1, 2}), F32({4, 2})}) == Shape{5, 4});
  const auto error = [](const char* equation, const std::vector<ValueInfo>& inputs) {
    return InferError(OpType::kEinsum, inputs, EinsumAttributes{equation});
  };
  CHECK_THAT(error("ij->i", {F32({2})}), Contains("'ij'"));
  CHECK_THAT(error("i,i->i", {F32({2}), F32({3})}), Contains("2 and 3"));
  CHECK_THAT(error("i->ii", {F32({2})}), Contains("twice"));
  CHECK_THAT(error("i->j", {F32({2})}), Contains("no operand"));
  CHECK_THAT(error("i", {F32({2}), F32({2})}), Contains("1 terms"));
  CHECK_THAT(error("i1->i", {F32({2, 2})}), Contains("'1'"));
}

TEST_CASE("resize: scales are rounded down, sizes are taken, and axes name their dimensions", "[ops]") {
  ResizeAttributes resize;
  resize.scales = {1, 1, 2.5, 0.4};
  CHECK(InferShape(OpType::kResize, {F32({2, 3, 5, 4})}, resize) == Shape{2, 3, 12, 1});
  CHECK_THAT(InferError(OpType::kResize, {F32({2, 3, 5})}, resize), Contains("4 scales"));
  CHECK_THAT(InferError(OpType::kResize, {F32({2, 3, 5, 2})}, resize), Contains("dimension 3"));
  resize.scales = {};
  resize.sizes = {7, 8};
  resize.axes = {-1, 2};
  CHECK(InferShape(OpType::kResize, {F32({2, 3, 5, 4})}, resize) == Shape{2, 3, 8, 7});
  resize.input_shape = {2, 3, 5, 4};
  CHECK(InferShape(OpType::kResizeGrad, {F32({2, 3, 8, 7})}, resize) == Shape{2, 3, 5, 4});
}

TEST_CASE("pool: planes of any rank", "[ops]") {
  CHECK(InferShape(OpType::kGlobalAveragePool, {F32({2, 3, 4, 5})}) == Shape{2, 3, 1, 1});
  CHECK_THAT(InferError(OpType::kGlobalMaxPool, {F32({2, 3})}), Contains("spatial"));
  const PoolAttributes line{{3}, {2}, {1, 1}, {1}, true, {}, true};
  CHECK(InferShape(OpType::kAveragePool, {F32({2, 3, 8})}, line) == Shape{2, 3, 5});
  CHECK_THAT(InferError(OpType::kAveragePool, {F32({2, 3, 8, 8})}, line), Contains("1 spatial"));
}

TEST_CASE("pool: rounding up counts only windows that begin inside", "[ops]") {
  PoolAttributes pool;
  pool.kernel_shape = {3, 3};
  pool.strides = {2, 2};
  CHECK(InferShape(OpType::kMaxPool, {F32({1, 2, 8, 8})}, pool) == Shape{1, 2, 3, 3});
  pool.ceil_mode = true;
  CHECK(InferShape(OpType::kMaxPool, {F32({1, 2, 8, 8})}, pool) == Shape{1, 2, 4, 4});
  pool.kernel_shape = {1, 1};
  pool.strides = {3, 3};
  CHECK(InferShape(OpType::kMaxPool, {F32({1, 2, 5, 7})}, pool) == Shape{1, 2, 2, 3});
  const auto infos = Infer(OpType::kMaxPoolWithArgmax, {F32({1, 2, 5, 7})}, pool);
  REQUIRE(infos.ok());
  CHECK((*infos)[1] == ValueInfo{DType::kI32, {1, 2, 2, 3}});
}

TEST_CASE("shape ops: flatten, reshape and expand", "[ops]") {
  CHECK(InferShape(OpType::kFlatten, {F32({2, 3, 4})}, FlattenAttributes{1}) == Shape{2, 12});
  CHECK(InferShape(OpType::kFlatten, {F32({2, 3, 4})}, FlattenAttributes{0}) == Shape{1, 24});
  CHECK(InferShape(OpType::kFlatten, {F32({2, 3, 4})}, FlattenAttributes{-1}) == Shape{6, 4});
  CHECK_FALSE(InferError(OpType::kFlatten, {F32({2})}, FlattenAttributes{2}).empty());
  CHECK(InferShape(OpType::kReshape, {F32({2, 3, 4})}, ReshapeAttributes{{0, -1}, false}) == Shape{2, 12});
  CHECK(InferShape(OpType::kReshape, {F32({0, 3})}, ReshapeAttributes{{3, 0}, true}) == Shape{3, 0});
  CHECK(InferShape(OpType::kReshape, {F32({1, 1})}, ReshapeAttributes{{}, false}) == Shape{});
  CHECK_THAT(InferError(OpType::kReshape, {F32({32, 3})}, ReshapeAttributes{{16, 7}, false}),
             Contains("96 elements") && Contains("batch"));
  CHECK_FALSE(InferError(OpType::kReshape, {F32({4})}, ReshapeAttributes{{-1, -1}, false}).empty());
  CHECK_FALSE(InferError(OpType::kReshape, {F32({0, 2})}, ReshapeAttributes{{0, -1}, true}).empty());
  CHECK(InferShape(OpType::kExpand, {F32({3, 1})}, ExpandAttributes{{2, 1, 4}}) == Shape{2, 3, 4});
  CHECK_FALSE(InferError(OpType::kExpand, {F32({3})}, ExpandAttributes{{-2}}).empty());
}

TEST_CASE("reduce: axes, kept dimensions and the empty list", "[ops]") {
  CHECK(InferShape(OpType::kReduceSum, {F32({2, 3, 4})}, ReduceAttributes{{1, -1}, true, false}) == Shape{2, 1, 1});
  CHECK(InferShape(OpType::kReduceMean, {F32({2, 3, 4})}, ReduceAttributes{{0}, false, false}) == Shape{3, 4});
  CHECK(InferShape(OpType::kReduceSum, {F32({2, 3})}, ReduceAttributes{{}, false, false}) == Shape{});
  CHECK(InferShape(OpType::kReduceSum, {F32({2, 3})}, ReduceAttributes{{}, false, true}) == Shape{2, 3});
  CHECK_THAT(InferError(OpType::kReduceSum, {F32({2, 3})}, ReduceAttributes{{1, -1}, true, false}), Contains("twice"));
  CHECK_THAT(InferError(OpType::kReduceSum, {F32({2, 3})}, ReduceAttributes{{2}, true, false}), Contains("axis 2"));
  CHECK(InferShape(OpType::kMaskedSum, {F32({2, 3}), F32({2})}) == Shape{});
  CHECK_FALSE(InferError(OpType::kMaskedSum, {F32({2, 3}), F32({3})}).empty());
}

TEST_CASE("reduce: integers have no logarithm, and a gradient fits its op", "[ops]") {
  CHECK(InferShape(OpType::kReduceMax, {I64({2, 3})}, ReduceAttributes{{0}, false, false}) == Shape{3});
  CHECK_THAT(InferError(OpType::kReduceLogSumExp, {I64({2, 3})}, ReduceAttributes{}), Contains("I64"));
  const ReduceGradAttributes grad{ReduceKind::kProd, {{0}, false, false}};
  CHECK(InferShape(OpType::kReduceGrad, {F32({3}), F32({2, 3}), F32({3})}, grad) == Shape{2, 3});
  CHECK_THAT(InferError(OpType::kReduceGrad, {F32({2}), F32({2, 3}), F32({3})}, grad), Contains("dY"));
  CHECK_THAT(InferError(OpType::kReduceGrad, {F32({3}), F32({2, 3}), F32({2})}, grad), Contains("Y is"));
}

TEST_CASE("layer norm: scale, bias and statistics follow the axis", "[ops]") {
  const LayerNormAttributes norm{-2, 1e-5};
  const auto infos = Infer(OpType::kLayerNormalization, {F32({5, 2, 3}), F32({2, 3}), F32({2, 3})}, norm);
  REQUIRE(infos.ok());
  CHECK(*infos == std::vector<ValueInfo>{F32({5, 2, 3}), F32({5, 1, 1}), F32({5, 1, 1})});
  CHECK_THAT(InferError(OpType::kLayerNormalization, {F32({5, 2, 3}), F32({3})}, norm), Contains("scale"));
  CHECK_THAT(InferError(OpType::kRmsNormalization, {F32({5}), F32({5})}, norm), Contains("axis -2"));
}

TEST_CASE("group norm: the groups divide the channels", "[ops]") {
  const ValueInfo c = F32({6});
  CHECK(InferShape(OpType::kGroupNormalization, {F32({2, 6, 4}), c, c}, GroupNormAttributes{3}) == Shape{2, 6, 4});
  CHECK_THAT(InferError(OpType::kGroupNormalization, {F32({2, 6, 4}), c, c}, GroupNormAttributes{4}), Contains("4"));
  CHECK_THAT(InferError(OpType::kGroupNormalization, {F32({2, 6}), c, c}, GroupNormAttributes{}), Contains("missing"));
  CHECK_THAT(InferError(OpType::kInstanceNormalization, {F32({2, 6}), c, F32({5})}, GroupNormAttributes{}),
             Contains("bias"));
}

TEST_CASE("softmax and losses: axes, labels and weights have to fit", "[ops]") {
  CHECK(InferShape(OpType::kSoftmax, {F32({2, 3})}, SoftmaxAttributes{-1}) == Shape{2, 3});
  CHECK_THAT(InferError(OpType::kSoftmax, {F32({2, 3})}, SoftmaxAttributes{2}), Contains("axis 2"));
  CrossEntropyAttributes loss;
  const OpType sce = OpType::kSoftmaxCrossEntropyLoss;
  CHECK(InferShape(sce, {F32({2, 3}), I64({2})}, loss) == Shape{});
  loss.reduction = Reduction::kNone;
  CHECK(InferShape(sce, {F32({2, 3, 5}), I64({2, 5}), F32({3})}, loss) == Shape{2, 5});
  CHECK_THAT(InferError(sce, {F32({2, 3}), I64({3})}, loss), Contains("labels"));
  CHECK_THAT(InferError(sce, {F32({2, 3}), F32({2})}, loss), Contains("integers"));
  CHECK_THAT(InferError(sce, {F32({2, 3}), I64({2}), F32({2})}, loss), Contains("class weights"));
  CHECK_THAT(InferError(sce, {F32({6}), I64({6})}, loss), Contains("[batch, classes, ...]"));
  CHECK(InferShape(OpType::kLossWeights, {I64({2, 5})}, loss) == Shape{2, 5});
  CHECK_THAT(InferError(OpType::kPointwiseLoss, {F32({2, 1}), F32({2})}, PointwiseLossAttributes{}),
             Contains("target is F32 [2], expected F32 [2, 1]"));
  CHECK(InferShape(OpType::kCountCorrect, {F32({2, 3}), I64({2}), F32({2})}, CountCorrectAttributes{}) == Shape{});
}

TEST_CASE("attention: heads, lengths, sizes, mask and dropout have to fit", "[ops]") {
  const OpType op = OpType::kAttention;
  const ValueInfo q = F32({2, 6, 5, 4});
  const ValueInfo k = F32({2, 3, 7, 4});
  const ValueInfo v = F32({2, 3, 7, 9});
  CHECK(InferShape(op, {q, k, v}, AttentionAttributes{}) == Shape{2, 6, 5, 9});
  CHECK(InferShape(op, {q, k, v, F32({1, 1, 5, 7})}, AttentionAttributes{}) == Shape{2, 6, 5, 9});
  CHECK(InferShape(op, {F32({2, 5, 6, 4}), k, v}, {AttentionAttributes{.q_rows = true, .y_rows = true}}) ==
        Shape{2, 5, 6, 9});
  CHECK_THAT(InferError(op, {q, F32({2, 3, 7, 5}), v}, AttentionAttributes{}), Contains("K, next to Q and V"));
  CHECK_THAT(InferError(op, {q, F32({2, 4, 7, 4}), F32({2, 4, 7, 9})}, AttentionAttributes{}), Contains("multiple"));
  CHECK_THAT(InferError(op, {q, k, v, F32({5, 6})}, AttentionAttributes{}), Contains("broadcast"));
  CHECK_THAT(InferError(op, {q, k, v, F32({1, 1, 5, 7}), I64({4})}, AttentionAttributes{}), Contains("ratio"));
  CHECK_THAT(InferError(op, {q, k, v}, AttentionAttributes{.packed_heads = 2}), Contains("packed_heads is 0"));
}

TEST_CASE("batch norm: channels have to fit, and one value has no deviation", "[ops]") {
  const ValueInfo c = F32({3});
  CHECK(InferShape(OpType::kBatchNormalization, {F32({2, 3, 4}), c, c, c, c}, BatchNormAttributes{}) == Shape{2, 3, 4});
  CHECK_THAT(InferError(OpType::kBatchNormalization, {F32({2, 3}), c, c, F32({2}), c}, BatchNormAttributes{}),
             Contains("mean"));
  CHECK_THAT(InferError(OpType::kBatchNormTraining, {F32({1, 3}), c, c}, BatchNormAttributes{}),
             Contains("single value"));
  CHECK_THAT(InferError(OpType::kBatchNormTraining, {F32({6}), c, c}, BatchNormAttributes{}), Contains("channels"));
}

TEST_CASE("ops: a result that no memory can hold is refused", "[ops]") {
  const int64_t huge = int64_t{1} << 31;
  CHECK_THAT(InferError(OpType::kMatMul, {F32({huge, 1}), F32({1, huge})}), Contains("too many bytes"));
}

}  // namespace
}  // namespace lockstep
