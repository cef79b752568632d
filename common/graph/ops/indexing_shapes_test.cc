// Shape inference of the ops that write by index, compare along an axis or walk along it.
#include <catch2/catch.hpp>

#include "common/graph/ops/op_test.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("scatter: updates have the shape of what is written", "[ops]") {
  const OpType elements = OpType::kScatterElements;
  CHECK(InferShape(elements, {F32({3, 4}), I64({2, 9}), F32({2, 9})}, ScatterAttributes{1}) == Shape{3, 4});
  CHECK_THAT(InferError(elements, {F32({3, 4}), I64({2, 2}), F32({2, 3})}, ScatterAttributes{1}), Contains("updates"));
  CHECK_THAT(InferError(elements, {F32({3, 4}), I64({4, 2}), F32({4, 2})}, ScatterAttributes{1}), Contains("longer"));
  CHECK_THAT(InferError(elements, {F32({3}), I64({1}), I64({1})}, ScatterAttributes{}), Contains("updates is I64"));
  CHECK_THAT(InferError(elements, {F32({3}), F32({1}), F32({1})}, ScatterAttributes{}), Contains("integers"));
  const OpType nd = OpType::kScatterND;
  CHECK(InferShape(nd, {I64({4, 5, 6}), I64({2, 1}), I64({2, 5, 6})}, ScatterNdAttributes{}) == Shape{4, 5, 6});
  CHECK(InferShape(nd, {F32({4, 5}), I64({7, 2}), F32({7})}, ScatterNdAttributes{}) == Shape{4, 5});
  CHECK_THAT(InferError(nd, {F32({4, 5}), I64({7, 3}), F32({7})}, ScatterNdAttributes{}), Contains("coordinates"));
  CHECK_THAT(InferError(nd, {F32({4, 5}), I64({}), F32({})}, ScatterNdAttributes{}), Contains("coordinates"));
}

TEST_CASE("ranking: the axis becomes one, k or depth", "[ops]") {
  CHECK(InferShape(OpType::kArgMax, {F32({2, 3, 4})}, ArgAttributes{-2}) == Shape{2, 1, 4});
  CHECK(InferShape(OpType::kArgMin, {I64({2, 3, 4})}, ArgAttributes{1, false}) == Shape{2, 4});
  CHECK((*Infer(OpType::kArgMax, {F32({2})}, ArgAttributes{}))[0].dtype == DType::kI64);
  CHECK_THAT(InferError(OpType::kArgMax, {F32({2, 0})}, ArgAttributes{1}), Contains("no elements"));
  const auto infos = Infer(OpType::kTopK, {F32({2, 5})}, TopKAttributes{3});
  REQUIRE(infos.ok());
  CHECK((*infos)[0] == F32({2, 3}));
  CHECK((*infos)[1] == I64({2, 3}));
  CHECK_THAT(InferError(OpType::kTopK, {F32({2, 5})}, TopKAttributes{6}), Contains("has 5"));
  CHECK(InferShape(OpType::kOneHot, {I64({2, 3}), F32({2})}, OneHotAttributes{5}) == Shape{2, 3, 5});
  CHECK(InferShape(OpType::kOneHot, {F32({2, 3}), F32({2})}, OneHotAttributes{5, -3}) == Shape{5, 2, 3});
  CHECK_THAT(InferError(OpType::kOneHot, {I64({2}), F32({3})}, OneHotAttributes{5}), Contains("values"));
  CHECK_THAT(InferError(OpType::kOneHot, {{DType::kBool, {2}}, F32({2})}, OneHotAttributes{5}), Contains("indices"));
  CHECK_THAT(InferError(OpType::kOneHot, {I64({2}), F32({2})}, OneHotAttributes{5, 2}), Contains("axis 2"));
}

TEST_CASE("sequence: shapes stay", "[ops]") {
  CHECK(InferShape(OpType::kCumSum, {I64({2, 3})}, CumSumAttributes{-1}) == Shape{2, 3});
  CHECK_THAT(InferError(OpType::kCumSum, {F32({2})}, CumSumAttributes{1}), Contains("axis 1"));
  CHECK(InferShape(OpType::kTrilu, {I64({2, 3, 4})}, TriluAttributes{}) == Shape{2, 3, 4});
  CHECK_THAT(InferError(OpType::kTrilu, {F32({2})}, TriluAttributes{}), Contains("matrices"));
  CHECK(InferShape(OpType::kReverseSequence, {F32({5, 2}), I64({2})}, ReverseSequenceAttributes{}) == Shape{5, 2});
  CHECK_THAT(InferError(OpType::kReverseSequence, {F32({5, 2}), I64({5})}, ReverseSequenceAttributes{}),
             Contains("sequence_lens"));
}

}  // namespace
}  // namespace lockstep
