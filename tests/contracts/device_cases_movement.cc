// Ops that move elements or pick them by index.
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

void MakeShape(OpType op, Dice& dice, CaseBuilder& b) {
  Shape shape = RandomShape(dice, 0, 4, 9);
  for (int64_t& extent : shape) extent = op == OpType::kExpand && dice.Flip() ? 1 : extent;
  const std::string x = b.In(shape);
  if (op == OpType::kFlatten) {
    b.Op(op, {x}, FlattenAttributes{.axis = dice.Roll(0, static_cast<int64_t>(shape.size()))});
  } else if (op == OpType::kReshape) {
    b.Op(op, {x}, ReshapeAttributes{.shape = {-1}});
  } else {
    Shape wider = shape;
    for (int64_t& extent : wider) extent = extent == 1 ? dice.Roll(1, 4) : extent;
    if (dice.Flip()) wider.insert(wider.begin(), dice.Roll(1, 3));
    b.Op(op, {x}, ExpandAttributes{.shape = wider});
  }
}

int64_t RandomAxis(Dice& dice, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  return dice.Roll(-rank, rank - 1);
}

int64_t& At(Shape& shape, int64_t axis) {
  return shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)];
}

void MakeTranspose(Dice& dice, CaseBuilder& b) {
  Shape shape = RandomShape(dice, 0, 5, 6);
  TransposeAttributes attributes;
  switch (dice.Roll(0, 3)) {
    case 0:
      break;
    case 1:  // larger than a block
      shape = {dice.Roll(1, 3), dice.Roll(1, 100), dice.Roll(1, 100)};
      attributes.perm = {0, 2, 1};
      break;
    case 2:  // the heads of an attention
      shape = {dice.Roll(1, 3), dice.Roll(1, 9), dice.Roll(1, 4), dice.Roll(1, 40)};
      attributes.perm = {0, 2, 1, 3};
      break;
    default:
      for (size_t i = 0; i < shape.size(); ++i) {
        const int64_t place = dice.Roll(0, static_cast<int64_t>(i));
        attributes.perm.insert(attributes.perm.begin() + place, static_cast<int64_t>(i));
      }
  }
  b.Op(OpType::kTranspose, {b.In(shape)}, attributes);
}

void MakeBlocks(OpType op, Dice& dice, CaseBuilder& b) {
  const int64_t size = dice.Roll(1, 5);
  const int64_t n = dice.Roll(1, 2), c = dice.Roll(1, 3), h = dice.Roll(1, 4), w = dice.Roll(1, 20);
  if (op == OpType::kSpaceToDepth) {
    b.Op(op, {b.In({n, c, h * size, w * size})}, BlockAttributes{size});
    return;
  }
  b.Op(op, {b.In({n, c * size * size, h, w})}, BlockAttributes{size, static_cast<BlockMode>(dice.Roll(0, 1))});
}

void MakeConcat(Dice& dice, CaseBuilder& b) {
  Shape shape = RandomShape(dice, 1, 4);
  const int64_t axis = RandomAxis(dice, shape);
  std::vector<std::string> inputs;
  for (int64_t i = dice.Roll(1, 4); i > 0; --i) {
    At(shape, axis) = dice.Roll(1, 5);
    inputs.push_back(b.In(shape));
  }
  b.Op(OpType::kConcat, inputs, ConcatAttributes{axis});
}

void MakeSplit(Dice& dice, CaseBuilder& b) {
  Shape shape = RandomShape(dice, 1, 4);
  SplitAttributes attributes{.axis = RandomAxis(dice, shape)};
  const int64_t parts = dice.Roll(1, 4);
  At(shape, attributes.axis) = parts * dice.Roll(1, 3);
  if (dice.Flip()) {
    At(shape, attributes.axis) = 0;
    for (int64_t i = 0; i < parts; ++i) {
      attributes.split.push_back(dice.Roll(1, 5));
      At(shape, attributes.axis) += attributes.split.back();
    }
  } else if (parts == 3 && dice.Flip()) {
    attributes.num_outputs = parts;
    At(shape, attributes.axis) = 8;
  }
  b.Op(OpType::kSplit, {b.In(shape)}, attributes, static_cast<int>(parts));
}

void MakeSlice(OpType op, Dice& dice, CaseBuilder& b) {
  Shape shape = RandomShape(dice, 1, 4);
  for (int64_t& extent : shape) extent += 4;
  SliceAttributes attributes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (dice.Roll(0, 2) == 0) continue;
    const bool forward = dice.Roll(0, 3) > 0;
    attributes.axes.push_back(static_cast<int64_t>(axis) - (dice.Flip() ? static_cast<int64_t>(shape.size()) : 0));
    attributes.starts.push_back(forward ? dice.Roll(0, 2) : dice.Roll(3, 99));
    attributes.ends.push_back(forward ? dice.Roll(3, 99) : dice.Roll(0, 2));
    attributes.steps.push_back((dice.Flip() ? 1 : dice.Roll(1, 3)) * (forward ? 1 : -1));
  }
  const std::string y = b.Op(OpType::kSlice, {b.In(shape)}, attributes)[0];
  if (op != OpType::kSliceGrad) return;
  attributes.input_shape = shape;
  b.Op(op, {b.In(b.ShapeOf(y))}, attributes);
}

void MakePad(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  Shape shape = RandomShape(dice, 1, 3);
  for (int64_t& extent : shape) extent += 2;
  PadAttributes attributes{.mode = static_cast<PadMode>(dice.Roll(0, 3)), .value = 0.25};
  for (size_t i = 0; i < 2 * shape.size(); ++i) attributes.pads.push_back(dice.Roll(-1, 4));
  const std::string y = b.Op(OpType::kPad, {b.In(shape)}, attributes)[0];
  if (op != OpType::kPadGrad) return;
  attributes.input_shape = shape;
  c.terms = 64;
  b.Op(op, {b.In(b.ShapeOf(y))}, attributes);
}

void MakeTile(Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 3);
  TileAttributes attributes;
  for (size_t i = 0; i < shape.size(); ++i) attributes.repeats.push_back(dice.Roll(1, 3));
  b.Op(OpType::kTile, {b.In(shape)}, attributes);
}

// Indices are 0, 1 or 2: every axis that they count along is at least as long.
Shape RandomTable(Dice& dice, int64_t min_rank) {
  Shape shape = RandomShape(dice, min_rank, 3, 5);
  for (int64_t& extent : shape) extent += 2;
  if (dice.Roll(0, 3) == 0) shape.back() = 100;
  return shape;
}

std::string RandomIndices(Dice& dice, CaseBuilder& b, Shape shape) {
  return b.In(std::move(shape), dice.Flip() ? DType::kI64 : DType::kI32);
}

void MakeGather(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomTable(dice, 1);
  GatherAttributes attributes{.axis = dice.Flip() ? 0 : RandomAxis(dice, shape)};
  const std::string x = b.In(shape);
  const std::string i = RandomIndices(dice, b, RandomShape(dice, 0, 2, 12));
  const std::string y = b.Op(OpType::kGather, {x, i}, attributes)[0];
  if (op != OpType::kGatherGrad) return;
  attributes.input_shape = shape;
  c.terms = 144;
  b.Op(op, {b.In(b.ShapeOf(y)), i}, attributes);
}

void MakeGatherElements(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomTable(dice, 1);
  GatherAttributes attributes{.axis = RandomAxis(dice, shape)};
  Shape indices = shape;
  // Sometimes whole lines along the axis.
  const bool lines = dice.Flip();
  for (int64_t& extent : indices) extent = lines ? extent : dice.Roll(1, extent);
  At(indices, attributes.axis) = dice.Roll(1, 9);
  const std::string x = b.In(shape);
  const std::string i = RandomIndices(dice, b, indices);
  const std::string y = b.Op(OpType::kGatherElements, {x, i}, attributes)[0];
  if (op != OpType::kGatherElementsGrad) return;
  attributes.input_shape = shape;
  c.terms = 9;
  b.Op(op, {b.In(b.ShapeOf(y)), i}, attributes);
}

void MakeGatherNd(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomTable(dice, 2);
  const auto rank = static_cast<int64_t>(shape.size());
  GatherNdAttributes attributes{.batch_dims = dice.Roll(0, 1)};
  Shape indices(shape.begin(), shape.begin() + attributes.batch_dims);
  indices.insert(indices.end(), {dice.Roll(1, 9), dice.Roll(1, rank - attributes.batch_dims)});
  const std::string x = b.In(shape);
  const std::string i = RandomIndices(dice, b, indices);
  const std::string y = b.Op(OpType::kGatherND, {x, i}, attributes)[0];
  if (op != OpType::kGatherNDGrad) return;
  attributes.input_shape = shape;
  c.terms = 9;
  b.Op(op, {b.In(b.ShapeOf(y)), i}, attributes);
}

}  // namespace

bool MakeMovementCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  switch (op) {
    case OpType::kFlatten:
    case OpType::kReshape:
    case OpType::kExpand:
      MakeShape(op, dice, b);
      return true;
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      b.Op(op, {b.In({3, 1, dice.Roll(1, 4)})}, SqueezeAttributes{{1}});
      return true;
    case OpType::kTranspose:
      MakeTranspose(dice, b);
      return true;
    case OpType::kDepthToSpace:
    case OpType::kSpaceToDepth:
      MakeBlocks(op, dice, b);
      return true;
    case OpType::kConcat:
      MakeConcat(dice, b);
      return true;
    case OpType::kSplit:
      MakeSplit(dice, b);
      return true;
    case OpType::kSlice:
    case OpType::kSliceGrad:
      MakeSlice(op, dice, b);
      return true;
    case OpType::kPad:
    case OpType::kPadGrad:
      MakePad(op, dice, b, c);
      return true;
    case OpType::kTile:
      MakeTile(dice, b);
      return true;
    case OpType::kGather:
    case OpType::kGatherGrad:
      MakeGather(op, dice, b, c);
      return true;
    case OpType::kGatherElements:
    case OpType::kGatherElementsGrad:
      MakeGatherElements(op, dice, b, c);
      return true;
    case OpType::kGatherND:
    case OpType::kGatherNDGrad:
      MakeGatherNd(op, dice, b, c);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
