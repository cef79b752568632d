// Reductions, what runs along one axis, and losses of logarithms.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

ReduceAttributes RandomAxes(Dice& dice, int64_t rank) {
  ReduceAttributes attributes{.axes = {}, .keep_dims = dice.Flip(), .noop_with_empty_axes = dice.Roll(0, 4) == 0};
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (dice.Flip()) attributes.axes.push_back(dice.Flip() ? axis : axis - rank);
  }
  return attributes;
}

void MakeRandomReduce(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 1, 4, 12);
  c.terms = NumElements(shape);
  // The logarithm of a sum needs one above zero.
  const std::string x = b.In(shape, DType::kF32, op == OpType::kReduceLogSum ? "variance" : "");
  b.Op(op, {x}, RandomAxes(dice, static_cast<int64_t>(shape.size())));
}

void MakeReduceGrad(Dice& dice, CaseBuilder& b, DeviceCase& c) {
  constexpr OpType kForward[] = {OpType::kReduceMax,    OpType::kReduceMin,       OpType::kReduceMax,
                                 OpType::kReduceProd,   OpType::kReduceL1,        OpType::kReduceL2,
                                 OpType::kReduceLogSum, OpType::kReduceLogSumExp, OpType::kReduceSumSquare};
  const int64_t kind = dice.Roll(0, 8);
  const OpType forward = kForward[kind];
  const Shape shape = RandomShape(dice, 1, 4, 9);
  const ReduceAttributes reduce = RandomAxes(dice, static_cast<int64_t>(shape.size()));
  c.terms = NumElements(shape);
  const std::string x = b.In(shape, DType::kF32, forward == OpType::kReduceLogSum ? "variance" : "");
  const std::string y = b.Op(forward, {x}, reduce)[0];
  b.Op(OpType::kReduceGrad, {b.In(b.ShapeOf(y)), x, y}, ReduceGradAttributes{static_cast<ReduceKind>(kind), reduce});
}

void MakeLogSoftmax(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 1, 4, 12);
  const auto rank = static_cast<int64_t>(shape.size());
  const SoftmaxAttributes attributes{.axis = dice.Roll(-rank, rank - 1)};
  c.terms = 24;
  const std::string y = b.Op(OpType::kLogSoftmax, {b.In(shape)}, attributes)[0];
  if (op == OpType::kLogSoftmaxGrad) b.Op(op, {b.In(shape), y}, attributes);
}

void MakeLikelihood(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  CrossEntropyAttributes attributes;
  attributes.reduction = static_cast<Reduction>(dice.Roll(0, 2));
  // A mean over ignored labels alone is NaN.
  if (dice.Flip()) attributes.ignore_index = attributes.reduction != Reduction::kMean ? 1 : -100;
  Shape scores = {dice.Roll(1, 9), dice.Roll(3, 10)};
  for (int64_t i = dice.Roll(0, 2); i > 0; --i) scores.push_back(dice.Roll(1, 4));
  Shape labels = scores;
  labels.erase(labels.begin() + 1);
  c.terms = NumElements(scores);
  std::vector<std::string> inputs = {b.In(scores)};
  inputs.push_back(b.In(labels, dice.Flip() ? DType::kI64 : DType::kI32));
  if (dice.Flip()) inputs.push_back(b.In({scores[1]}));
  const std::string loss = b.Op(OpType::kNegativeLogLikelihoodLoss, inputs, attributes)[0];
  if (op == OpType::kNegativeLogLikelihoodLoss) return;
  inputs.insert(inputs.begin(), b.In(b.ShapeOf(loss)));
  b.Op(op, inputs, attributes);
}

}  // namespace

bool MakeReductionCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  switch (op) {
    case OpType::kReduceMax:
    case OpType::kReduceMin:
    case OpType::kReduceProd:
    case OpType::kReduceL1:
    case OpType::kReduceL2:
    case OpType::kReduceLogSum:
    case OpType::kReduceLogSumExp:
    case OpType::kReduceSumSquare:
      MakeRandomReduce(op, dice, b, c);
      return true;
    case OpType::kReduceGrad:
      MakeReduceGrad(dice, b, c);
      return true;
    case OpType::kLogSoftmax:
    case OpType::kLogSoftmaxGrad:
      MakeLogSoftmax(op, dice, b, c);
      return true;
    case OpType::kNegativeLogLikelihoodLoss:
    case OpType::kNegativeLogLikelihoodLossGrad:
      MakeLikelihood(op, dice, b, c);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
