// Normalisations, and dropout outside of training.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

constexpr double kEpsilon = 1e-2;

GradientCase BatchNorm(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 2, 4);
  shape[0] = dice.Int(2, 4);
  const int64_t channels = shape[1];
  const std::string x = writer.Input(dice.Uniform(shape));
  const std::string scale = writer.Input(dice.Uniform({channels}));
  const std::string bias = writer.Input(dice.Uniform({channels}));
  for (const char* name : {"mean", "var"}) {
    writer.made.graph.variables.push_back({name, DType::kF64, {channels}, VariableKind::kStatistic, {}});
  }
  return writer.Op(OpType::kBatchNormalization, {x, scale, bias, "mean", "var"},
                   BatchNormAttributes{kEpsilon, 0.9, true, dice.Coin()});
}

GradientCase FrozenBatchNorm(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 2, 4);
  std::vector<std::string> inputs = {writer.Input(dice.Uniform(shape))};
  for (int i = 0; i < 2; ++i) inputs.push_back(writer.Input(dice.Uniform({shape[1]})));
  inputs.push_back(writer.Input(dice.Uniform({shape[1]}), false));
  Tensor variance = dice.Uniform({shape[1]});
  for (double& value : variance.elements<double>()) value += 1.5;
  inputs.push_back(writer.Input(std::move(variance), false));
  return writer.Op(OpType::kBatchNormalization, inputs, BatchNormAttributes{kEpsilon});
}

// Stays in the graph only where its mask is read.
GradientCase Dropout(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 1, 4)));
  GradientCase made = writer.Op(OpType::kDropout, {x}, DropoutAttributes{});
  made.graph.nodes[0].outputs.push_back("mask");
  made.graph.outputs = {"mask"};
  return made;
}

GradientCase LayerNorm(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = dice.Int(0, rank - 1);
  const Shape width(shape.begin() + axis, shape.end());
  std::vector<std::string> inputs = {writer.Input(dice.Uniform(shape)), writer.Input(dice.Uniform(width))};
  if (dice.Coin()) inputs.push_back(writer.Input(dice.Uniform(width)));
  return writer.Op(OpType::kLayerNormalization, inputs,
                   LayerNormAttributes{dice.Coin() ? axis : axis - rank, kEpsilon});
}

GradientCase RmsNorm(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = dice.Int(0, rank - 1);
  const std::string x = writer.Input(dice.Uniform(shape));
  const std::string scale = writer.Input(dice.Uniform(Shape(shape.begin() + axis, shape.end())));
  return writer.Op(OpType::kRmsNormalization, {x, scale},
                   LayerNormAttributes{dice.Coin() ? axis : axis - rank, kEpsilon});
}

template <OpType kOp>
GradientCase GroupNorm(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 2, 4);
  GroupNormAttributes norm{0, kEpsilon};
  if (kOp == OpType::kGroupNormalization) {
    norm.num_groups = dice.Int(1, 3);
    shape[1] = norm.num_groups * dice.Int(1, 2);
  }
  std::vector<std::string> inputs = {writer.Input(dice.Uniform(shape))};
  for (int i = 0; i < 2; ++i) inputs.push_back(writer.Input(dice.Uniform({shape[1]})));
  return writer.Op(kOp, inputs, norm);
}

GradientCase LpNorm(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  Tensor value = dice.Distinct(shape);
  // Away from a norm of zero, where the slope is steep.
  for (double& x : value.elements<double>()) x += x > 0 ? 0.5 : -0.5;
  const std::string x = writer.Input(std::move(value));
  return writer.Op(OpType::kLpNormalization, {x}, LpNormAttributes{dice.Int(-rank, rank - 1), dice.Int(1, 2)});
}

constexpr OpCase kNormalisation[] = {
    {OpType::kBatchNormTraining, BatchNorm},
    {OpType::kBatchNormalization, FrozenBatchNorm},
    {OpType::kDropout, Dropout},
    {OpType::kLayerNormalization, LayerNorm},
    {OpType::kRmsNormalization, RmsNorm},
    {OpType::kGroupNormalization, GroupNorm<OpType::kGroupNormalization>},
    {OpType::kInstanceNormalization, GroupNorm<OpType::kInstanceNormalization>},
    {OpType::kLpNormalization, LpNorm},
};

}  // namespace

absl::Span<const OpCase> NormalisationCases() { return kNormalisation; }

}  // namespace lockstep
