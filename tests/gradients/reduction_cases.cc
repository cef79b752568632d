// Reductions, what runs along one axis, and losses of logarithms.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

ReduceAttributes RandomAxes(CaseNumbers& dice, int64_t rank) {
  ReduceAttributes reduce;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (dice.Coin()) reduce.axes.push_back(dice.Coin() ? axis : axis - rank);
  }
  reduce.keep_dims = dice.Coin();
  reduce.noop_with_empty_axes = dice.Coin();
  return reduce;
}

template <OpType kOp>
GradientCase Reduce(CaseNumbers& dice) {
  CaseWriter writer;
  Tensor value = dice.Distinct(RandomShape(dice, 0, 4));
  for (double& x : value.elements<double>()) {
    if (kOp == OpType::kReduceLogSum) x = 0.5 + x * x;
    // A product is smooth at zero.
    if (kOp == OpType::kReduceProd && dice.Int(0, 5) == 0) x = 0;
  }
  const auto rank = static_cast<int64_t>(value.shape().size());
  const std::string x = writer.Input(std::move(value));
  return writer.Op(kOp, {x}, RandomAxes(dice, rank));
}

GradientCase LogSoftmax(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kLogSoftmax, {x}, SoftmaxAttributes{dice.Int(-rank, rank - 1)});
}

GradientCase Likelihood(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape scores = RandomShape(dice, 2, 4);
  Shape labels = scores;
  labels.erase(labels.begin() + 1);
  CrossEntropyAttributes loss;
  loss.reduction = static_cast<Reduction>(dice.Int(0, 2));
  if (dice.Coin()) loss.ignore_index = -1;
  const std::string x = writer.Input(dice.Uniform(scores));
  Tensor targets = Tensor::Zeros(DType::kI64, labels);
  for (int64_t i = 0; i < targets.num_elements(); ++i) {
    // The first label always counts, so that a mean has something to divide by.
    const bool ignored = loss.ignore_index.has_value() && i > 0 && dice.Int(0, 3) == 0;
    targets.elements<int64_t>()[i] = ignored ? -1 : dice.Int(0, scores[1] - 1);
  }
  std::vector<std::string> inputs = {x, writer.Input(std::move(targets), false)};
  if (dice.Coin()) {
    Tensor weights = dice.Uniform({scores[1]});
    for (double& weight : weights.elements<double>()) weight += 1.5;
    inputs.push_back(writer.Input(std::move(weights), false));
  }
  return writer.Op(OpType::kNegativeLogLikelihoodLoss, inputs, loss);
}

constexpr OpCase kReduction[] = {
    {OpType::kReduceSum, Reduce<OpType::kReduceSum>},
    {OpType::kReduceMean, Reduce<OpType::kReduceMean>},
    {OpType::kReduceMax, Reduce<OpType::kReduceMax>},
    {OpType::kReduceMin, Reduce<OpType::kReduceMin>},
    {OpType::kReduceProd, Reduce<OpType::kReduceProd>},
    {OpType::kReduceL1, Reduce<OpType::kReduceL1>},
    {OpType::kReduceL2, Reduce<OpType::kReduceL2>},
    {OpType::kReduceLogSum, Reduce<OpType::kReduceLogSum>},
    {OpType::kReduceLogSumExp, Reduce<OpType::kReduceLogSumExp>},
    {OpType::kReduceSumSquare, Reduce<OpType::kReduceSumSquare>},
    {OpType::kLogSoftmax, LogSoftmax},
    {OpType::kNegativeLogLikelihoodLoss, Likelihood},
};

}  // namespace

absl::Span<const OpCase> ReductionCases() { return kReduction; }

}  // namespace lockstep
