// Ops that move elements, on tensors large enough for tiles, packs and several blocks, and with indices that come again
// and again: CUDA's own kernels give the bits of the reference.
#include <catch2/catch.hpp>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

// Other numbers in each tensor of a test case.
class Inputs {
 public:
  template <typename T = float>
  Tensor Numbers(const Shape& shape) {
    Tensor tensor = Tensor::Zeros(DTypeOf<T>(), shape);
    for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
      const float number = 100 * SymmetricUnit(random_.At(next_++));
      // Negative numbers have no unsigned counterpart but through integers.
      tensor.elements<T>()[i] =
          std::is_integral_v<T> ? static_cast<T>(static_cast<int64_t>(number)) : static_cast<T>(number);
    }
    return tensor;
  }

  // In [-extent, extent); every fourth one is `favourite`.
  template <typename T>
  Tensor Indices(const Shape& shape, int64_t extent, int64_t favourite) {
    Tensor tensor = Tensor::Zeros(DTypeOf<T>(), shape);
    for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
      const uint32_t bits = random_.At(next_++);
      const int64_t index = bits % 4 == 0 ? favourite : static_cast<int64_t>(bits >> 8) % (2 * extent) - extent;
      tensor.elements<T>()[i] = static_cast<T>(index);
    }
    return tensor;
  }

 private:
  RandomStream random_ = RandomStream::For(17, 4);
  uint64_t next_ = 0;
};

void CheckMoved(OpType op, const OpAttributes& attributes, const std::vector<Tensor>& inputs, int outputs = 1) {
  const auto copies = [&] {
    std::vector<Tensor> all;
    for (const Tensor& input : inputs) all.push_back(input.Clone());
    return all;
  };
  const auto reference = MakeTestedDevice(TestedDevice::kReference);
  const auto cuda = MakeTestedDevice(TestedDevice::kCudaOnHost);
  const NamedTensors expected = RunOneNode(*reference, op, attributes, copies(), outputs);
  const NamedTensors got = RunOneNode(*cuda, op, attributes, copies(), outputs);
  INFO(OpName(op));
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    REQUIRE(got.at(name).shape() == tensor.shape());
    CHECK(std::memcmp(got.at(name).data(), tensor.data(), tensor.bytes().size()) == 0);
  }
}

template <typename... T>
std::vector<Tensor> All(T&&... tensors) {
  std::vector<Tensor> all;
  (all.push_back(std::forward<T>(tensors)), ...);
  return all;
}

TEST_CASE("large movement: transposing goes through tiles and keeps every element", "[device]") {
  Inputs inputs;
  CheckMoved(OpType::kTranspose, TransposeAttributes{{1, 0}}, All(inputs.Numbers({70, 45})));
  CheckMoved(OpType::kTranspose, TransposeAttributes{{1, 0}}, All(inputs.Numbers<uint8_t>({33, 64})));
  CheckMoved(OpType::kTranspose, TransposeAttributes{{0, 2, 1}}, All(inputs.Numbers<int64_t>({3, 40, 65})));
  CheckMoved(OpType::kTranspose, TransposeAttributes{{2, 0, 3, 1}}, All(inputs.Numbers({5, 40, 3, 9})));
  CheckMoved(OpType::kTranspose, TransposeAttributes{{0, 2, 1, 3}}, All(inputs.Numbers({2, 17, 3, 64})));
  CheckMoved(OpType::kTranspose, TransposeAttributes{{3, 2, 1, 0}}, All(inputs.Numbers({9, 8, 11, 600})));
}

TEST_CASE("large movement: rows of packs are copied whole", "[device]") {
  Inputs inputs;
  CheckMoved(OpType::kConcat, ConcatAttributes{1},
             All(inputs.Numbers({9, 64}), inputs.Numbers({9, 3000}), inputs.Numbers({9, 5})));
  CheckMoved(OpType::kSplit, SplitAttributes{.axis = 1, .split = {768, 768, 768}}, All(inputs.Numbers({5, 3 * 768})),
             3);
  CheckMoved(OpType::kSlice, SliceAttributes{.starts = {4}, .ends = {-4}, .axes = {1}, .steps = {}},
             All(inputs.Numbers({7, 2000})));
  CheckMoved(OpType::kSlice, SliceAttributes{.starts = {-1, 3}, .ends = {-900, 90}, .axes = {0, 1}, .steps = {-2, 3}},
             All(inputs.Numbers<uint8_t>({600, 100})));
  CheckMoved(OpType::kSliceGrad,
             SliceAttributes{.starts = {8}, .ends = {1008}, .axes = {1}, .steps = {}, .input_shape = {6, 1200}},
             All(inputs.Numbers({6, 1000})));
  CheckMoved(OpType::kExpand, ExpandAttributes{{40, 3, 260}}, All(inputs.Numbers({40, 1, 260})));
  CheckMoved(OpType::kExpand, ExpandAttributes{{3, 700}}, All(inputs.Numbers({3, 1})));
  CheckMoved(OpType::kTile, TileAttributes{{3, 2, 5}}, All(inputs.Numbers({4, 30, 16})));
}

TEST_CASE("large movement: padding mirrors, repeats and wraps as often as it takes, and adds up on the way back",
          "[device]") {
  Inputs inputs;
  for (const PadMode mode : {PadMode::kConstant, PadMode::kReflect, PadMode::kEdge, PadMode::kWrap}) {
    PadAttributes pad{.pads = {2, 0, 7, -1, 0, 30}, .axes = {}, .mode = mode, .value = 0};
    CheckMoved(OpType::kPad, pad, All(inputs.Numbers({5, 3, 11})));
    pad.input_shape = {5, 3, 11};
    CheckMoved(OpType::kPadGrad, pad, All(inputs.Numbers({6, 3, 48})));
  }
}

TEST_CASE("large movement: gradients of equal indices are added in index order, however large the table", "[device]") {
  Inputs inputs;
  // One, two and three digits of eight bits; rows of packs and single elements.
  for (const int64_t extent : {200, 5000, 70000}) {
    CheckMoved(OpType::kGatherGrad, GatherAttributes{0, {extent, 8}},
               All(inputs.Numbers({40, 60, 8}), inputs.Indices<int64_t>({40, 60}, extent, 3)));
  }
  CheckMoved(OpType::kGatherGrad, GatherAttributes{1, {3, 400, 5}},
             All(inputs.Numbers({3, 700, 5}), inputs.Indices<int32_t>({700}, 400, 399)));
  CheckMoved(OpType::kGather, GatherAttributes{0},
             All(inputs.Numbers({500, 768}), inputs.Indices<int64_t>({90}, 500, -1)));
  CheckMoved(OpType::kGatherElementsGrad, GatherAttributes{0, {3000, 4}},
             All(inputs.Numbers<double>({1100, 3}), inputs.Indices<int64_t>({1100, 3}, 3000, 0)));
  CheckMoved(OpType::kGatherNDGrad, GatherNdAttributes{0, {60, 70, 4}},
             All(inputs.Numbers({2500, 4}), inputs.Indices<int64_t>({2500, 2}, 60, 59)));
}

TEST_CASE("large movement: of equal indices the last update stays, or all are combined in index order", "[device]") {
  Inputs inputs;
  for (const ScatterReduction reduction : {ScatterReduction::kNone, ScatterReduction::kAdd, ScatterReduction::kMul,
                                           ScatterReduction::kMax, ScatterReduction::kMin}) {
    CheckMoved(OpType::kScatterElements, ScatterAttributes{0, reduction},
               All(inputs.Numbers({900, 4}), inputs.Indices<int64_t>({1300, 4}, 900, 17), inputs.Numbers({1300, 4})));
    CheckMoved(OpType::kScatterND, ScatterNdAttributes{reduction},
               All(inputs.Numbers<int32_t>({300, 12}), inputs.Indices<int32_t>({2100, 1}, 300, 299),
                   inputs.Numbers<int32_t>({2100, 12})));
  }
}

TEST_CASE("large movement: operands of rows, columns and single numbers broadcast over many blocks", "[device]") {
  Inputs inputs;
  CheckMoved(OpType::kAdd, NoAttributes(), All(inputs.Numbers({50, 1028}), inputs.Numbers({1028})));
  CheckMoved(OpType::kMul, NoAttributes(), All(inputs.Numbers({50, 1028}), inputs.Numbers({50, 1})));
  CheckMoved(OpType::kSub, NoAttributes(), All(inputs.Numbers({}), inputs.Numbers({3, 4001})));
  CheckMoved(OpType::kDiv, NoAttributes(), All(inputs.Numbers({7, 33, 60}), inputs.Numbers({33, 1})));
  CheckMoved(OpType::kAdd, NoAttributes(), All(inputs.Numbers<int64_t>({900, 3}), inputs.Numbers<int64_t>({900, 1})));
  CheckMoved(OpType::kLess, NoAttributes(), All(inputs.Numbers({64, 1, 48}), inputs.Numbers({33, 48})));
  CheckMoved(OpType::kMax, NoAttributes(),
             All(inputs.Numbers({40, 48}), inputs.Numbers({48}), inputs.Numbers({40, 1}), inputs.Numbers({}),
                 inputs.Numbers({1, 48})));
}

}  // namespace
}  // namespace lockstep
