// Normalisations of channels, of rows, of groups of channels, and by norms.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

// Like In, behind a convolution with one product per element, so that devices may give it a layout of their own.
std::string Convolved(const Shape& shape, CaseBuilder& b, DeviceCase& c) {
  ConvAttributes attributes;
  attributes.kernel_shape = {1, 1};
  Shape plane = shape;
  plane[1] = 1;
  const std::string y = b.Op(OpType::kConv, {b.In(plane), b.In({shape[1], 1, 1, 1})}, attributes)[0];
  c.graph.outputs.clear();
  return y;
}

void MakeBatchNorm(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  Shape shape = {dice.Roll(2, 6), dice.Roll(1, 20)};
  for (int64_t i = dice.Roll(0, 2); i > 0; --i) shape.push_back(dice.Roll(2, 9));
  const BatchNormAttributes attributes{.unbiased_running_var = dice.Flip()};
  const Shape channel = {shape[1]};
  c.terms = 4 * NumElements(shape) / shape[1];
  const bool training = op == OpType::kBatchNormTraining || op == OpType::kBatchNormGrad;
  const std::string x = training && shape.size() == 4 ? Convolved(shape, b, c) : b.In(shape);
  const std::string scale = b.In(channel);
  if (op == OpType::kBatchNormalization || op == OpType::kBatchNormFrozenGrad) {
    const bool gradient = op == OpType::kBatchNormFrozenGrad;
    const std::string mean = b.In(channel);
    const std::string variance = b.In(channel, DType::kF32, "variance");
    if (gradient) b.Op(op, {b.In(shape), x, scale, mean, variance}, attributes, 3);
    if (!gradient) b.Op(op, {x, scale, b.In(channel), mean, variance}, attributes);
    return;
  }
  const auto forward = b.Op(OpType::kBatchNormTraining, {x, scale, b.In(channel)}, attributes, 4);
  if (op != OpType::kBatchNormGrad) return;
  // What is left of dX is small beside the terms, which are of the size of the inverse deviation.
  c.scale = forward[2];
  b.Op(op, {b.In(shape), x, scale, forward[1], forward[2]}, attributes, 3);
}

void MakeLayerNorm(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const bool rms = op == OpType::kRmsNormalization || op == OpType::kRmsNormGrad;
  Shape shape = RandomShape(dice, 1, 4, 9);
  if (dice.Roll(0, 2) == 0) shape.back() = dice.Roll(30, 100);
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t axis = dice.Roll(0, rank - 1);
  const Shape width(shape.begin() + axis, shape.end());
  const LayerNormAttributes attributes{dice.Flip() ? axis : axis - rank, 1e-2};
  c.terms = 8 * NumElements(shape);
  std::vector<std::string> inputs = {b.In(shape), b.In(width)};
  if (rms) {
    // As with the gradient of a batch norm: what is left of dX is smaller than its terms.
    c.scale = b.Op(OpType::kRmsNormalization, inputs, attributes)[0];
    inputs.insert(inputs.begin(), b.In(shape));
    if (dice.Flip()) inputs.push_back(b.In(shape));
    if (op == OpType::kRmsNormGrad) b.Op(op, inputs, attributes, 2);
    return;
  }
  const std::vector<std::string> plain = inputs;
  if (dice.Flip()) inputs.push_back(b.In(width));
  const bool gradient = op == OpType::kLayerNormGrad;
  const auto forward = b.Op(OpType::kLayerNormalization, inputs, attributes, gradient || dice.Flip() ? 3 : 1);
  if (!gradient) return;
  c.scale = forward[2];
  inputs = {b.In(shape), plain[0], plain[1], forward[1], forward[2]};
  if (dice.Flip()) inputs.push_back(b.In(shape));
  b.Op(op, inputs, attributes, 3);
}

void MakeGroupNorm(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  Shape shape = RandomShape(dice, 2, 4, 6);
  GroupNormAttributes attributes{0, 1e-2};
  if (op == OpType::kGroupNormalization || (op == OpType::kGroupNormGrad && dice.Flip())) {
    attributes.num_groups = dice.Roll(1, 3);
    shape[1] = attributes.num_groups * dice.Roll(1, 4);
  }
  const OpType forward = attributes.num_groups == 0 ? OpType::kInstanceNormalization : OpType::kGroupNormalization;
  c.terms = 8 * NumElements(shape);
  const std::string x = b.In(shape);
  const std::string scale = b.In({shape[1]});
  b.Op(forward, {x, scale, b.In({shape[1]})}, attributes);
  if (op == OpType::kGroupNormGrad) b.Op(op, {b.In(shape), x, scale}, attributes, 3);
}

void MakeLpNorm(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 1, 4, 9);
  const auto rank = static_cast<int64_t>(shape.size());
  const LpNormAttributes attributes{dice.Roll(-rank, rank - 1), dice.Roll(1, 2)};
  c.terms = 32;
  const std::string x = b.In(shape, DType::kF32, "variance");
  b.Op(OpType::kLpNormalization, {x}, attributes);
  if (op == OpType::kLpNormGrad) b.Op(op, {b.In(shape), x}, attributes);
}

}  // namespace

bool MakeNormalisationCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  switch (op) {
    case OpType::kBatchNormalization:
    case OpType::kBatchNormTraining:
    case OpType::kBatchNormGrad:
    case OpType::kBatchNormFrozenGrad:
      MakeBatchNorm(op, dice, b, c);
      return true;
    case OpType::kLayerNormalization:
    case OpType::kLayerNormGrad:
    case OpType::kRmsNormalization:
    case OpType::kRmsNormGrad:
      MakeLayerNorm(op, dice, b, c);
      return true;
    case OpType::kGroupNormalization:
    case OpType::kInstanceNormalization:
    case OpType::kGroupNormGrad:
      MakeGroupNorm(op, dice, b, c);
      return true;
    case OpType::kLpNormalization:
    case OpType::kLpNormGrad:
      MakeLpNorm(op, dice, b, c);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
