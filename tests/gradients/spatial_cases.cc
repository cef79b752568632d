// Convolutions, pooling and resizing over one to three dimensions, and sums of products in Einstein's notation.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

std::vector<int64_t> Draw(CaseNumbers& dice, size_t count, int64_t low, int64_t high) {
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = dice.Int(low, high);
  return values;
}

// More dimensions are smaller, or differences take too long.
size_t RandomRank(CaseNumbers& dice) { return static_cast<size_t>(dice.Int(1, 3)); }
int64_t Largest(size_t rank) { return rank == 3 ? 5 : 7; }

Shape Append(Shape shape, const std::vector<int64_t>& dims) {
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

ConvAttributes RandomConv(CaseNumbers& dice, size_t rank) {
  ConvAttributes conv;
  conv.kernel_shape = Draw(dice, rank, 1, rank == 3 ? 2 : 3);
  conv.strides = Draw(dice, rank, 1, 2);
  conv.dilations = Draw(dice, rank, 1, 2);
  conv.pads = Draw(dice, 2 * rank, 0, 2);
  conv.group = dice.Int(1, rank == 3 ? 2 : 3);
  return conv;
}

GradientCase Conv(CaseNumbers& dice) {
  CaseWriter writer;
  const size_t rank = RandomRank(dice);
  const ConvAttributes conv = RandomConv(dice, rank);
  const int64_t in = dice.Int(1, 2), out = dice.Int(1, 2) * conv.group;
  const std::vector<int64_t> plane = Draw(dice, rank, Largest(rank) - 2, Largest(rank));
  std::vector<std::string> inputs = {writer.Input(dice.Uniform(Append({dice.Int(1, 2), in * conv.group}, plane))),
                                     writer.Input(dice.Uniform(Append({out, in}, conv.kernel_shape)))};
  if (dice.Coin()) inputs.push_back(writer.Input(dice.Uniform({out})));
  return writer.Op(OpType::kConv, inputs, conv);
}

GradientCase ConvTranspose(CaseNumbers& dice) {
  CaseWriter writer;
  const size_t rank = RandomRank(dice);
  ConvAttributes conv = RandomConv(dice, rank);
  conv.pads = Draw(dice, 2 * rank, 0, 1);
  if (dice.Coin()) {
    for (const int64_t stride : conv.strides) conv.output_padding.push_back(dice.Int(0, stride - 1));
  }
  const int64_t in = dice.Int(1, 2) * conv.group, out = dice.Int(1, 2);
  std::vector<std::string> inputs = {writer.Input(dice.Uniform(Append({dice.Int(1, 2), in}, Draw(dice, rank, 3, 4)))),
                                     writer.Input(dice.Uniform(Append({in, out}, conv.kernel_shape)))};
  if (dice.Coin()) inputs.push_back(writer.Input(dice.Uniform({out * conv.group})));
  return writer.Op(OpType::kConvTranspose, inputs, conv);
}

template <OpType kOp>
GradientCase Pool(CaseNumbers& dice) {
  CaseWriter writer;
  const size_t rank = RandomRank(dice);
  PoolAttributes pool;
  pool.kernel_shape = Draw(dice, rank, 1, 3);
  pool.strides = Draw(dice, rank, 1, 3);
  pool.dilations = Draw(dice, rank, 1, 2);
  pool.pads.clear();
  for (size_t i = 0; i < 2 * rank; ++i) pool.pads.push_back(dice.Int(0, pool.kernel_shape[i % rank] - 1));
  pool.ceil_mode = dice.Coin();
  pool.count_include_pad = kOp == OpType::kAveragePool && dice.Coin();
  const Shape shape = Append({dice.Int(1, 2), dice.Int(1, 2)}, Draw(dice, rank, 5, Largest(rank)));
  return writer.Op(kOp, {writer.Input(dice.Distinct(shape))}, pool);
}

template <OpType kOp>
GradientCase GlobalPool(CaseNumbers& dice) {
  CaseWriter writer;
  return writer.Op(kOp, {writer.Input(dice.Distinct(RandomShape(dice, 3, 5)))});
}

GradientCase Resize(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 1, 4);
  ResizeAttributes resize;
  resize.mode = static_cast<ResizeMode>(dice.Int(0, 1));
  resize.coordinates = static_cast<ResizeCoordinates>(dice.Int(0, 4));
  resize.rounding = static_cast<ResizeRounding>(dice.Int(0, 3));
  const bool by_scale = dice.Coin();
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (dice.Coin())
      resize.axes.push_back(static_cast<int64_t>(axis) - (dice.Coin() ? 0 : static_cast<int64_t>(shape.size())));
  }
  for (size_t i = 0; i < (resize.axes.empty() ? shape.size() : resize.axes.size()); ++i) {
    if (by_scale) resize.scales.push_back(0.25 * static_cast<double>(dice.Int(4, 10)));
    if (!by_scale) resize.sizes.push_back(dice.Int(1, 6));
  }
  return writer.Op(OpType::kResize, {writer.Input(dice.Uniform(shape))}, resize);
}

GradientCase Einsum(CaseNumbers& dice) {
  struct Example {
    const char* equation;
    std::vector<Shape> shapes;
  };
  const int64_t b = dice.Int(1, 3), i = dice.Int(1, 4), j = dice.Int(1, 4), k = dice.Int(1, 3);
  const Example examples[] = {{"bij,bjk->bik", {{b, i, j}, {b, j, k}}},
                              {"...ii->...i", {{b, i, i}}},
                              {"i,j->ij", {{i}, {j}}},
                              {"ij->j", {{i, j}}},
                              {"ij,kj", {{i, j}, {k, j}}},
                              {"...ij,...j->i...", {{k, 1, i, j}, {b, j}}},
                              {"bi,ij,bj->b", {{b, i}, {i, j}, {b, j}}},
                              {"ii", {{i, i}}}};
  const Example& example = examples[dice.Int(0, 7)];
  CaseWriter writer;
  std::vector<std::string> inputs;
  for (const Shape& shape : example.shapes) inputs.push_back(writer.Input(dice.Uniform(shape)));
  return writer.Op(OpType::kEinsum, inputs, EinsumAttributes{example.equation});
}

constexpr OpCase kSpatial[] = {
    {OpType::kConv, Conv},
    {OpType::kConvTranspose, ConvTranspose},
    {OpType::kMaxPoolWithArgmax, Pool<OpType::kMaxPool>},
    {OpType::kAveragePool, Pool<OpType::kAveragePool>},
    {OpType::kGlobalAveragePool, GlobalPool<OpType::kGlobalAveragePool>},
    {OpType::kGlobalMaxPool, GlobalPool<OpType::kGlobalMaxPool>},
    {OpType::kEinsum, Einsum},
    {OpType::kResize, Resize},
};

}  // namespace

absl::Span<const OpCase> SpatialCases() { return kSpatial; }

}  // namespace lockstep
