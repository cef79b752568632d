// Shape inference of the ops that move elements or pick them by index.
#include <catch2/catch.hpp>
#include <limits>

#include "common/graph/ops/op_test.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

ValueInfo Bools(Shape shape) { return {DType::kBool, std::move(shape)}; }

TEST_CASE("squeeze and unsqueeze: dimensions of one go and come", "[ops]") {
  CHECK(InferShape(OpType::kSqueeze, {F32({1, 3, 1, 2})}, SqueezeAttributes{}) == Shape{3, 2});
  CHECK(InferShape(OpType::kSqueeze, {F32({1, 3, 1})}, SqueezeAttributes{{-1}}) == Shape{1, 3});
  CHECK_THAT(InferError(OpType::kSqueeze, {F32({1, 3})}, SqueezeAttributes{{1}}), Contains("not 1"));
  CHECK_THAT(InferError(OpType::kSqueeze, {F32({1, 3})}, SqueezeAttributes{{0, -2}}), Contains("twice"));
  CHECK(InferShape(OpType::kUnsqueeze, {F32({3, 2})}, SqueezeAttributes{{4, 0, -3}}) == Shape{1, 3, 1, 2, 1});
  CHECK_THAT(InferError(OpType::kUnsqueeze, {F32({3})}, SqueezeAttributes{{2}}), Contains("axis 2"));
}

TEST_CASE("transpose: perm has to be a permutation, none turns the order around", "[ops]") {
  CHECK(InferShape(OpType::kTranspose, {F32({2, 3, 4})}, TransposeAttributes{}) == Shape{4, 3, 2});
  CHECK(InferShape(OpType::kTranspose, {Bools({2, 3, 4})}, TransposeAttributes{{1, 2, 0}}) == Shape{3, 4, 2});
  for (const std::vector<int64_t>& wrong : {Shape{0, 1}, Shape{0, 1, 1}, Shape{0, 1, 3}, Shape{0, 1, -1}}) {
    CHECK_THAT(InferError(OpType::kTranspose, {F32({2, 3, 4})}, TransposeAttributes{wrong}), Contains("permutation"));
  }
  CHECK(InferShape(OpType::kDepthToSpace, {F32({2, 12, 3, 4})}, BlockAttributes{2}) == Shape{2, 3, 6, 8});
  CHECK(InferShape(OpType::kSpaceToDepth, {F32({2, 3, 6, 8})}, BlockAttributes{2}) == Shape{2, 12, 3, 4});
  CHECK_THAT(InferError(OpType::kDepthToSpace, {F32({2, 6, 3, 4})}, BlockAttributes{2}), Contains("blocksize 2"));
  CHECK_THAT(InferError(OpType::kSpaceToDepth, {F32({2, 3, 5, 8})}, BlockAttributes{2}), Contains("blocksize 2"));
}

TEST_CASE("concat and split: what lies beside the axis is equal, the lengths add up", "[ops]") {
  CHECK(InferShape(OpType::kConcat, {F32({2, 3}), F32({2, 0}), F32({2, 4})}, ConcatAttributes{-1}) == Shape{2, 7});
  CHECK_THAT(InferError(OpType::kConcat, {F32({2, 3}), F32({3, 3})}, ConcatAttributes{1}), Contains("input 1"));
  CHECK_THAT(InferError(OpType::kConcat, {F32({2, 3}), I64({2, 3})}, ConcatAttributes{1}), Contains("I64"));
  CHECK_THAT(InferError(OpType::kConcat, {F32({}), F32({})}, ConcatAttributes{0}), Contains("axis 0"));
  const ValueInfo from = F32({7, 2});
  const auto parts = [&](const SplitAttributes& split, size_t outputs) {
    Node node{"n", OpType::kSplit, {"x"}, std::vector<std::string>(outputs, "y"), split};
    const ValueInfo* input = &from;
    const auto infos = InferNode(node, {&input, 1});
    std::vector<int64_t> lengths;
    if (infos.ok()) {
      for (const ValueInfo& info : *infos) lengths.push_back(info.shape[0]);
    }
    return lengths;
  };
  CHECK(parts({0, {3, 0, 4}}, 3) == std::vector<int64_t>{3, 0, 4});
  CHECK(parts({0, {}}, 7) == std::vector<int64_t>(7, 1));
  CHECK(parts({0, {}, 3}, 3) == std::vector<int64_t>{3, 3, 1});
  CHECK(parts({0, {}}, 3).empty());
  CHECK(parts({0, {}, 3}, 2).empty());
  CHECK(parts({0, {}, 6}, 6).empty());
  CHECK(parts({0, {3, 3}}, 2).empty());
  CHECK(parts({0, {8, -1}}, 2).empty());
  CHECK_THAT(InferError(OpType::kSplit, {from}, SplitAttributes{0, {3, 4}}), Contains("1 outputs"));
}

TEST_CASE("slice: bounds are drawn in as in ONNX", "[ops]") {
  const auto count = [](int64_t start, int64_t end, int64_t step) {
    return InferShape(OpType::kSlice, {F32({10})}, SliceAttributes{{start}, {end}, {}, {step}})[0];
  };
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  CHECK(count(2, 8, 1) == 6);
  CHECK(count(2, kMax, 3) == 3);
  CHECK(count(-3, kMax, 1) == 3);
  CHECK(count(-100, -1, 1) == 9);
  CHECK(count(20, 30, 1) == 0);
  CHECK(count(5, 3, 1) == 0);
  CHECK(count(kMax, kMin, -1) == 10);
  CHECK(count(9, 0, -2) == 5);
  CHECK(count(-1, -11, -1) == 10);
  CHECK(count(0, kMax, kMax) == 1);
  CHECK(count(kMax, kMin, kMin + 1) == 1);
  CHECK(InferShape(OpType::kSlice, {F32({0, 4})}, SliceAttributes{{0, 1}, {3, -1}, {0, 1}, {-1, 1}}) == Shape{0, 2});
  CHECK(InferShape(OpType::kSlice, {I64({4})}, SliceAttributes{{1}, {2}, {-1}, {}}) == Shape{1});
  CHECK_THAT(InferError(OpType::kSlice, {F32({2, 2})}, SliceAttributes{{0, 0}, {1, 1}, {1, -1}, {}}),
             Contains("twice"));
  CHECK_THAT(InferError(OpType::kSlice, {F32({2})}, SliceAttributes{{0}, {1}, {1}, {}}), Contains("axis 1"));
  CHECK_THAT(InferError(OpType::kSliceGrad, {F32({2})}, SliceAttributes{{0}, {3}, {}, {}, {5}}), Contains("[3]"));
}

TEST_CASE("pad and tile: lengths, cuts and constants have to be possible", "[ops]") {
  CHECK(InferShape(OpType::kPad, {F32({2, 3})}, PadAttributes{{1, 0, 2, 4}}) == Shape{5, 7});
  CHECK(InferShape(OpType::kPad, {F32({2, 3})}, PadAttributes{{-1, 2}, {-1}}) == Shape{2, 4});
  CHECK_THAT(InferError(OpType::kPad, {F32({2, 3})}, PadAttributes{{1, 1}}), Contains("2 pads"));
  CHECK_THAT(InferError(OpType::kPad, {F32({2})}, PadAttributes{{-2, -1}}), Contains("2 elements"));
  CHECK_THAT(InferError(OpType::kPad, {F32({0})}, PadAttributes{{1, 1}, {}, PadMode::kEdge}), Contains("edge"));
  CHECK(InferShape(OpType::kPad, {F32({0})}, PadAttributes{{1, 1}}) == Shape{2});
  CHECK_THAT(InferError(OpType::kPad, {F32({2, 2})}, PadAttributes{{1, 1, 1, 1}, {0, -2}}), Contains("twice"));
  CHECK_THAT(InferError(OpType::kPad, {{DType::kU8, {2}}}, PadAttributes{{1, 1}, {}, PadMode::kConstant, 256}),
             Contains("256"));
  CHECK_THAT(InferError(OpType::kPad, {I64({2})}, PadAttributes{{1, 1}, {}, PadMode::kConstant, 0.5}), Contains("0.5"));
  CHECK(InferShape(OpType::kPad, {Bools({2})}, PadAttributes{{1, 1}, {}, PadMode::kConstant, 1}) == Shape{4});
  CHECK(InferShape(OpType::kTile, {F32({2, 3})}, TileAttributes{{2, 0}}) == Shape{4, 0});
  CHECK_THAT(InferError(OpType::kTile, {F32({2, 3})}, TileAttributes{{2}}), Contains("repeats"));
  CHECK_THAT(InferError(OpType::kTile, {F32({2})}, TileAttributes{{int64_t{1} << 62}}), Contains("repeats"));
}

TEST_CASE("gather: the indices' shape goes where ONNX puts it", "[ops]") {
  CHECK(InferShape(OpType::kGather, {F32({2, 3, 4}), I64({5, 6})}, GatherAttributes{1}) == Shape{2, 5, 6, 4});
  CHECK(InferShape(OpType::kGather, {Bools({2, 3}), I64({})}, GatherAttributes{-1}) == Shape{2});
  CHECK_THAT(InferError(OpType::kGather, {F32({2, 3}), F32({2})}, GatherAttributes{}), Contains("integers"));
  CHECK(InferShape(OpType::kGatherElements, {F32({2, 3}), I64({1, 9})}, GatherAttributes{1}) == Shape{1, 9});
  CHECK_THAT(InferError(OpType::kGatherElements, {F32({2, 3}), I64({3, 3})}, GatherAttributes{1}), Contains("longer"));
  CHECK(InferShape(OpType::kGatherND, {F32({2, 3, 4}), I64({5, 2})}, GatherNdAttributes{}) == Shape{5, 4});
  CHECK(InferShape(OpType::kGatherND, {F32({2, 3, 4}), I64({2, 1})}, GatherNdAttributes{1}) == Shape{2, 4});
  CHECK(InferShape(OpType::kGatherND, {F32({2, 3, 4}), I64({2, 5, 2})}, GatherNdAttributes{1}) == Shape{2, 5});
  for (const Shape& wrong : {Shape{}, Shape{5, 4}, Shape{5, 0}}) {
    CHECK_FALSE(InferError(OpType::kGatherND, {F32({2, 3, 4}), I64(wrong)}, GatherNdAttributes{}).empty());
  }
  CHECK_THAT(InferError(OpType::kGatherND, {F32({2, 3}), I64({3, 1})}, GatherNdAttributes{1}), Contains("common"));
  CHECK(InferShape(OpType::kGatherGrad, {F32({2, 5}), I64({5})}, GatherAttributes{1, {2, 3}}) == Shape{2, 3});
  CHECK_THAT(InferError(OpType::kGatherGrad, {F32({2, 4}), I64({5})}, GatherAttributes{1, {2, 3}}), Contains("dY"));
}

}  // namespace
}  // namespace lockstep
