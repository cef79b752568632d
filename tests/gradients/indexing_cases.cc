// Ops that write by index, compare along an axis or walk along it.
#include <algorithm>

#include "tests/gradients/index_dice.h"
#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

ScatterReduction RandomScatterReduction(CaseNumbers& dice) {
  return dice.Coin() ? ScatterReduction::kNone : ScatterReduction::kAdd;
}

// 0, 1, ... along `axis`, in random order on every line: without equal indices.
Tensor DistinctIndices(CaseNumbers& dice, const Shape& shape, int64_t axis, int64_t extent) {
  Tensor indices = Tensor::Zeros(DType::kI64, shape);
  int64_t inner = 1;
  for (size_t i = FromFront(axis, shape) + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t count = shape[FromFront(axis, shape)];
  for (int64_t line = 0; line < indices.num_elements() / count; ++line) {
    const std::vector<int64_t> order = RandomOrder(dice, static_cast<size_t>(extent));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = order[static_cast<size_t>(i)] - (dice.Coin() ? extent : 0);
      indices.elements<int64_t>()[line / inner * count * inner + i * inner + line % inner] = index;
    }
  }
  return indices;
}

GradientCase ScatterElements(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 3);
  const ScatterAttributes scatter{RandomAxis(dice, shape), RandomScatterReduction(dice)};
  const int64_t extent = shape[FromFront(scatter.axis, shape)];
  Shape indices = ElementIndices(dice, shape, scatter.axis);
  const std::string x = writer.Input(dice.Uniform(shape));
  std::string i;
  if (scatter.reduction == ScatterReduction::kNone) {
    indices[FromFront(scatter.axis, shape)] = dice.Int(1, extent);
    i = writer.Input(DistinctIndices(dice, indices, scatter.axis, extent), false);
  } else {
    i = writer.Input(RandomIndices(dice, indices, extent), false);
  }
  const std::string updates = writer.Input(dice.Uniform(indices));
  return writer.Op(OpType::kScatterElements, {x, i, updates}, scatter);
}

GradientCase ScatterNd(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape(static_cast<size_t>(dice.Int(1, 3)), dice.Int(2, 3));
  const ScatterNdAttributes scatter{RandomScatterReduction(dice)};
  const int64_t coordinates = dice.Int(1, static_cast<int64_t>(shape.size()));
  const int64_t rows = dice.Int(1, shape[0]);
  Shape updates = {rows};
  updates.insert(updates.end(), shape.begin() + coordinates, shape.end());
  const std::string x = writer.Input(dice.Uniform(shape));
  Tensor indices = scatter.reduction == ScatterReduction::kNone
                       ? DistinctIndices(dice, {rows, coordinates}, 0, shape[0])
                       : RandomIndices(dice, {rows, coordinates}, shape[0]);
  const std::string i = writer.Input(std::move(indices), false);
  const std::string u = writer.Input(dice.Uniform(updates));
  return writer.Op(OpType::kScatterND, {x, i, u}, scatter);
}

GradientCase TopK(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 3);
  const int64_t axis = RandomAxis(dice, shape);
  const TopKAttributes top{dice.Int(1, shape[FromFront(axis, shape)]), axis, dice.Coin(), dice.Coin()};
  const std::string x = writer.Input(dice.Distinct(shape));
  GradientCase made = writer.Op(OpType::kTopK, {x}, top);
  made.graph.nodes[0].outputs.push_back(dice.Coin() ? "indices" : "");
  return made;
}

GradientCase CumSum(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 3);
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kCumSum, {x}, CumSumAttributes{RandomAxis(dice, shape), dice.Coin(), dice.Coin()});
}

GradientCase Trilu(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 2, 4)));
  return writer.Op(OpType::kTrilu, {x}, TriluAttributes{dice.Coin(), dice.Int(-4, 4)});
}

GradientCase ReverseSequence(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 2, 4);
  const int64_t batch = dice.Int(0, 1);
  Tensor lengths = Tensor::Zeros(DType::kI64, {shape[static_cast<size_t>(batch)]});
  for (int64_t& length : lengths.elements<int64_t>()) length = dice.Int(0, shape[static_cast<size_t>(1 - batch)]);
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kReverseSequence, {x, writer.Input(std::move(lengths), false)},
                   ReverseSequenceAttributes{batch, 1 - batch});
}

constexpr OpCase kIndexing[] = {
    {OpType::kScatterElements, ScatterElements},
    {OpType::kScatterND, ScatterNd},
    {OpType::kTopK, TopK},
    {OpType::kCumSum, CumSum},
    {OpType::kTrilu, Trilu},
    {OpType::kReverseSequence, ReverseSequence},
};

}  // namespace

absl::Span<const OpCase> IndexingCases() { return kIndexing; }

}  // namespace lockstep
