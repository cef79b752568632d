// Ops that write by index, compare along an axis or walk along it.
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

// Indices are 0, 1 or 2: every axis is at least as long.
Shape RandomIndexed(Dice& dice, int64_t min_rank) {
  Shape shape = RandomShape(dice, min_rank, 3, 5);
  for (int64_t& extent : shape) extent += 2;
  return shape;
}

int64_t RandomIndexedAxis(Dice& dice, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  return dice.Roll(-rank, rank - 1);
}

ScatterReduction RandomReduction(Dice& dice) { return static_cast<ScatterReduction>(dice.Roll(0, 4)); }

void MakeScatterElements(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomIndexed(dice, 1);
  ScatterAttributes attributes{.axis = RandomIndexedAxis(dice, shape), .reduction = RandomReduction(dice)};
  Shape indices = shape;
  for (int64_t& extent : indices) extent = dice.Roll(1, extent);
  const std::string x = b.In(shape);
  const std::string i = b.In(indices, dice.Flip() ? DType::kI64 : DType::kI32);
  if (op == OpType::kScatterElementsGrad) {
    b.Op(op, {x, i}, attributes);
    return;
  }
  b.Op(op, {x, i, b.In(indices)}, attributes);
}

void MakeScatterNd(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomIndexed(dice, 1);
  const int64_t coordinates = dice.Roll(1, static_cast<int64_t>(shape.size()));
  const ScatterNdAttributes attributes{.reduction = RandomReduction(dice)};
  const std::string x = b.In(shape);
  Shape updates = {dice.Roll(1, 9)};
  const std::string i = b.In({updates[0], coordinates}, dice.Flip() ? DType::kI64 : DType::kI32);
  if (op == OpType::kScatterNDGrad) {
    b.Op(op, {x, i}, attributes);
    return;
  }
  updates.insert(updates.end(), shape.begin() + coordinates, shape.end());
  b.Op(op, {x, i, b.In(updates)}, attributes);
}

void MakeRanking(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 1, 4);
  const int64_t axis = RandomIndexedAxis(dice, shape);
  // Few different values, so that ties are met.
  const std::string x = b.In(shape, DType::kF32, dice.Flip() ? "coarse" : "x");
  if (op == OpType::kTopK) {
    const int64_t extent = shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
    b.Op(op, {x}, TopKAttributes{.k = dice.Roll(1, extent), .axis = axis, .largest = dice.Flip()}, 2);
  } else {
    b.Op(op, {x}, ArgAttributes{.axis = axis, .keep_dims = dice.Flip(), .select_last_index = dice.Flip()});
  }
}

void MakeOneHot(Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 3);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::string i = b.In(shape, dice.Flip() ? DType::kI64 : DType::kI32);
  b.Op(OpType::kOneHot, {i, b.In({2})}, OneHotAttributes{.depth = dice.Roll(1, 5), .axis = dice.Roll(-rank - 1, rank)});
}

void MakeCumSum(Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 1, 4);
  c.terms = 7;
  const CumSumAttributes attributes{
      .axis = RandomIndexedAxis(dice, shape), .exclusive = dice.Flip(), .reverse = dice.Flip()};
  b.Op(OpType::kCumSum, {b.In(shape)}, attributes);
}

}  // namespace

bool MakeIndexingCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  switch (op) {
    case OpType::kScatterElements:
    case OpType::kScatterElementsGrad:
      MakeScatterElements(op, dice, b);
      return true;
    case OpType::kScatterND:
    case OpType::kScatterNDGrad:
      MakeScatterNd(op, dice, b);
      return true;
    case OpType::kArgMax:
    case OpType::kArgMin:
    case OpType::kTopK:
      MakeRanking(op, dice, b);
      return true;
    case OpType::kOneHot:
      MakeOneHot(dice, b);
      return true;
    case OpType::kCumSum:
      MakeCumSum(dice, b, c);
      return true;
    case OpType::kTrilu:
      b.Op(op, {b.In(RandomShape(dice, 2, 4))}, TriluAttributes{.upper = dice.Flip(), .k = dice.Roll(-4, 4)});
      return true;
    case OpType::kReverseSequence: {
      const Shape shape = RandomShape(dice, 2, 4);
      const int64_t batch = dice.Roll(0, 1);
      const std::string x = b.In(shape);
      b.Op(op, {x, b.In({shape[static_cast<size_t>(batch)]}, DType::kI64)},
           ReverseSequenceAttributes{batch, 1 - batch});
      return true;
    }
    default:
      return false;
  }
}

}  // namespace lockstep
