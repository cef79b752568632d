// Convolutions, pooling and resizing over one to three dimensions, and sums of products in Einstein's notation.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

std::vector<int64_t> Draw(Dice& dice, size_t count, int64_t low, int64_t high) {
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = dice.Roll(low, high);
  return values;
}

Shape Append(Shape shape, const std::vector<int64_t>& dims) {
  shape.insert(shape.end(), dims.begin(), dims.end());
  return shape;
}

// Two dimensions are what most models have.
size_t RandomRank(Dice& dice) {
  const int64_t roll = dice.Roll(0, 3);
  return roll == 0 ? 1 : roll == 1 ? 3 : 2;
}

ConvAttributes RandomConv(Dice& dice, size_t rank) {
  ConvAttributes attributes;
  attributes.group = dice.Roll(0, 3) == 0 ? 2 : 1;
  attributes.kernel_shape = Draw(dice, rank, 1, rank == 3 ? 3 : 5);
  attributes.strides = Draw(dice, rank, 1, 3);
  attributes.dilations.assign(rank, 1);
  attributes.dilations[0] = dice.Roll(1, 2);
  attributes.pads = Draw(dice, 2 * rank, 0, 2);
  return attributes;
}

// Three by three without steps, with many channels: what devices have methods of its own for.
ConvAttributes PlainConv(Dice& dice) {
  ConvAttributes attributes;
  attributes.kernel_shape = {3, 3};
  attributes.pads = dice.Roll(0, 2) == 0 ? Draw(dice, 4, 0, 1) : std::vector<int64_t>(4, 1);
  return attributes;
}

void MakeConv(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const bool plain = dice.Roll(0, 3) == 0;
  const size_t rank = plain ? 2 : RandomRank(dice);
  ConvAttributes attributes = plain ? PlainConv(dice) : RandomConv(dice, rank);
  const bool depthwise = attributes.group > 1 && dice.Flip();
  if (depthwise) attributes.group = dice.Roll(2, 19);
  const int64_t in = plain ? dice.Roll(31, 33) : depthwise ? 1 : dice.Roll(1, 9);
  const int64_t out = plain ? 16 * dice.Roll(2, 3) : depthwise ? 1 : dice.Roll(1, 17);
  const Shape x = Append({dice.Roll(1, 4), in * attributes.group}, Draw(dice, rank, 9, rank == 3 ? 10 : 14));
  const Shape w = Append({out * attributes.group, in}, attributes.kernel_shape);
  Shape y = {x[0], w[0]};
  for (size_t d = 0; d < rank; ++d) {
    const int64_t extent = (attributes.kernel_shape[d] - 1) * attributes.dilations[d] + 1;
    y.push_back((x[2 + d] + attributes.pads[d] + attributes.pads[rank + d] - extent) / attributes.strides[d] + 1);
  }
  const int64_t kernel = NumElements(w) / (w[0] * w[1]);
  c.sums_of_products = true;
  c.terms = in * kernel + 1;
  if (op == OpType::kConv) {
    std::vector<std::string> inputs = {b.In(x), b.In(w)};
    if (dice.Flip()) inputs.push_back(b.In({w[0]}));
    const std::string result = b.Op(op, inputs, attributes)[0];
    if (dice.Flip()) {
      c.graph.outputs.clear();
      b.Op(OpType::kRelu, {result}, NoAttributes());
    }
  } else if (op == OpType::kConvGradInput) {
    attributes.input_shape = x;
    c.terms = out * kernel;
    const std::string dy = b.In(y);
    b.Op(op, {dy, b.In(w)}, attributes);
  } else {
    c.terms = NumElements(y) / y[1];
    const std::string dy = b.In(y);
    b.Op(op, {dy, b.In(x)}, attributes, dice.Flip() ? 2 : 1);
  }
}

void MakeConvTranspose(Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const size_t rank = RandomRank(dice);
  ConvAttributes attributes = RandomConv(dice, rank);
  if (dice.Flip()) {
    for (const int64_t stride : attributes.strides) attributes.output_padding.push_back(dice.Roll(0, stride - 1));
  }
  const int64_t in = dice.Roll(1, 9) * attributes.group, out = dice.Roll(1, 9);
  const Shape w = Append({in, out}, attributes.kernel_shape);
  c.sums_of_products = true;
  c.terms = NumElements(w) / out + 1;
  std::vector<std::string> inputs = {b.In(Append({dice.Roll(1, 3), in}, Draw(dice, rank, 5, 7))), b.In(w)};
  if (dice.Flip()) inputs.push_back(b.In({out * attributes.group}));
  b.Op(OpType::kConvTranspose, inputs, attributes);
}

void MakePool(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const bool average = op == OpType::kAveragePool || op == OpType::kAveragePoolGrad;
  const size_t rank = RandomRank(dice);
  PoolAttributes attributes;
  attributes.kernel_shape = Draw(dice, rank, 1, 3);
  attributes.strides = Draw(dice, rank, 1, 3);
  attributes.dilations.assign(rank, 1);
  attributes.dilations[0] = dice.Roll(1, 2);
  attributes.ceil_mode = dice.Flip();
  attributes.count_include_pad = average && dice.Flip();
  attributes.pads.clear();
  for (size_t i = 0; i < 2 * rank; ++i) attributes.pads.push_back(dice.Roll(0, attributes.kernel_shape[i % rank] - 1));
  if (rank == 2 && dice.Flip()) attributes = {.kernel_shape = {2, 2}, .strides = {2, 2}};
  const Shape shape = Append({dice.Roll(1, 3), dice.Roll(1, 20)}, Draw(dice, rank, 6, rank == 3 ? 8 : 12));
  c.terms = 27;
  // Few different values, so that ties are met.
  const std::string x = b.In(shape, DType::kF32, "coarse");
  const auto forward = op == OpType::kMaxPool || average ? b.Op(average ? OpType::kAveragePool : op, {x}, attributes)
                                                         : b.Op(OpType::kMaxPoolWithArgmax, {x}, attributes, 2);
  attributes.input_shape = shape;
  if (op == OpType::kAveragePoolGrad) b.Op(op, {b.In(b.ShapeOf(forward[0]))}, attributes);
  if (op == OpType::kMaxPoolGrad) b.Op(op, {b.In(b.ShapeOf(forward[0])), forward[1]}, attributes);
}

void MakeGlobalPool(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 3, 5);
  c.terms = NumElements(shape);
  b.Op(op, {b.In(shape)}, NoAttributes());
}

void MakeResize(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 3, 4);
  ResizeAttributes resize{.mode = static_cast<ResizeMode>(dice.Roll(0, 1))};
  for (size_t axis = 0; axis < shape.size(); ++axis)
    resize.scales.push_back(axis < 2 ? 1 : 0.5 * static_cast<double>(dice.Roll(2, 5)));
  c.terms = 64;
  const std::string y = b.Op(OpType::kResize, {b.In(shape)}, resize)[0];
  resize.input_shape = shape;
  if (op == OpType::kResizeGrad) b.Op(op, {b.In(b.ShapeOf(y))}, resize);
}

void MakeEinsum(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const int64_t n = dice.Roll(1, 3), i = dice.Roll(1, 7), j = dice.Roll(1, 7), k = dice.Roll(1, 7);
  const bool product = dice.Flip();
  EinsumAttributes attributes{product ? "bij,bjk->bik" : "...ii->...i"};
  std::vector<std::string> inputs = {b.In(product ? Shape{n, i, j} : Shape{n, i, i})};
  if (product) inputs.push_back(b.In({n, j, k}));
  c.terms = 8;
  c.sums_of_products = true;
  const std::string y = b.Op(OpType::kEinsum, inputs, attributes)[0];
  if (op == OpType::kEinsum) return;
  attributes.operand = product ? dice.Roll(0, 1) : 0;
  inputs.insert(inputs.begin(), b.In(b.ShapeOf(y)));
  b.Op(op, inputs, attributes);
}

}  // namespace

bool MakeSpatialCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  switch (op) {
    case OpType::kConv:
    case OpType::kConvGradInput:
    case OpType::kConvGradWeight:
      MakeConv(op, dice, b, c);
      return true;
    case OpType::kConvTranspose:
      MakeConvTranspose(dice, b, c);
      return true;
    case OpType::kMaxPool:
    case OpType::kMaxPoolWithArgmax:
    case OpType::kMaxPoolGrad:
    case OpType::kAveragePool:
    case OpType::kAveragePoolGrad:
      MakePool(op, dice, b, c);
      return true;
    case OpType::kGlobalAveragePool:
    case OpType::kGlobalMaxPool:
      MakeGlobalPool(op, dice, b, c);
      return true;
    case OpType::kResize:
    case OpType::kResizeGrad:
      MakeResize(op, dice, b, c);
      return true;
    case OpType::kEinsum:
    case OpType::kEinsumGrad:
      MakeEinsum(op, dice, b, c);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
