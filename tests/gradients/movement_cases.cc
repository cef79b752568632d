// Ops that move elements or pick them by index.
#include <algorithm>

#include "tests/gradients/index_dice.h"
#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

GradientCase Flatten(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kFlatten, {x}, FlattenAttributes{dice.Int(-rank, rank)});
}

GradientCase Reshape(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 2, 4);
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kReshape, {x}, ReshapeAttributes{dice.Coin() ? Shape{0, -1} : Shape{-1}, false});
}

GradientCase Expand(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const std::string x = writer.Input(dice.Uniform(Broadcastable(dice, shape)));
  return writer.Op(OpType::kExpand, {x}, ExpandAttributes{shape});
}

GradientCase Squeeze(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 4);
  SqueezeAttributes squeeze;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1 && dice.Coin()) squeeze.axes.push_back(static_cast<int64_t>(i));
  }
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kSqueeze, {x}, squeeze);
}

GradientCase Unsqueeze(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 1, 3)));
  return writer.Op(OpType::kUnsqueeze, {x}, SqueezeAttributes{{dice.Int(0, 1), -1}});
}

GradientCase Transpose(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 5);
  TransposeAttributes transpose;
  if (dice.Coin()) transpose.perm = RandomOrder(dice, shape.size());
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kTranspose, {x}, transpose);
}

GradientCase DepthToSpace(CaseNumbers& dice) {
  CaseWriter writer;
  const int64_t b = dice.Int(1, 3);
  const std::string x = writer.Input(dice.Uniform({dice.Int(1, 2), b * b * dice.Int(1, 2), dice.Int(1, 3), 2}));
  return writer.Op(OpType::kDepthToSpace, {x}, BlockAttributes{b, static_cast<BlockMode>(dice.Int(0, 1))});
}

GradientCase SpaceToDepth(CaseNumbers& dice) {
  CaseWriter writer;
  const int64_t b = dice.Int(1, 3);
  const std::string x = writer.Input(dice.Uniform({dice.Int(1, 2), dice.Int(1, 2), b * dice.Int(1, 3), b * 2}));
  return writer.Op(OpType::kSpaceToDepth, {x}, BlockAttributes{b});
}

GradientCase Concat(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 1, 4);
  const int64_t axis = RandomAxis(dice, shape);
  std::vector<std::string> inputs;
  for (int64_t i = dice.Int(1, 4); i > 0; --i) {
    shape[FromFront(axis, shape)] = dice.Int(1, 3);
    inputs.push_back(writer.Input(dice.Uniform(shape)));
  }
  if (dice.Int(0, 3) == 0) inputs.push_back(inputs[0]);
  return writer.Op(OpType::kConcat, inputs, ConcatAttributes{axis});
}

// The loss depends on some of the parts.
GradientCase Split(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 1, 4);
  SplitAttributes split{.axis = RandomAxis(dice, shape)};
  const int64_t parts = dice.Int(1, 5);
  int64_t& extent = shape[FromFront(split.axis, shape)];
  switch (dice.Int(0, 2)) {
    case 0:
      extent = parts * dice.Int(1, 2);
      break;
    case 1:
      extent = parts * 2 - (parts > 1 ? 1 : 0);
      split.num_outputs = parts;
      break;
    default:
      extent = 0;
      for (int64_t i = 0; i < parts; ++i) {
        split.split.push_back(dice.Int(i == 0 ? 1 : 0, 3));
        extent += split.split.back();
      }
  }
  const std::string x = writer.Input(dice.Uniform(shape));
  GradientCase made = writer.Op(OpType::kSplit, {x}, split);
  Node& node = made.graph.nodes[0];
  made.outputs.clear();
  for (int64_t i = 0; i < parts; ++i) {
    if (i > 0) node.outputs.push_back(dice.Int(0, 3) == 0 ? "" : "y" + std::to_string(i));
    if (!node.outputs.back().empty() && (dice.Coin() || i == 0)) made.outputs.push_back(node.outputs.back());
  }
  if (made.outputs.size() > 1 && dice.Coin()) made.outputs.erase(made.outputs.begin());
  return made;
}

GradientCase Slice(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 1, 4);
  for (int64_t& dim : shape) dim += 2;
  SliceAttributes slice;
  for (const int64_t axis : RandomOrder(dice, shape.size())) {
    if (dice.Coin()) continue;
    slice.axes.push_back(dice.Coin() ? axis : axis - static_cast<int64_t>(shape.size()));
    slice.starts.push_back(dice.Int(-9, 9));
    slice.ends.push_back(dice.Int(-9, 9));
    slice.steps.push_back(dice.Int(1, 3) * (dice.Coin() ? 1 : -1));
  }
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kSlice, {x}, slice);
}

GradientCase Tile(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 3);
  TileAttributes tile;
  for (size_t i = 0; i < shape.size(); ++i) tile.repeats.push_back(dice.Int(1, 3));
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kTile, {x}, tile);
}

GradientCase Pad(CaseNumbers& dice) {
  CaseWriter writer;
  Shape shape = RandomShape(dice, 0, 3);
  for (int64_t& dim : shape) dim += 2;
  PadAttributes pad{.mode = static_cast<PadMode>(dice.Int(0, 3)), .value = 0.5};
  std::vector<int64_t> behind;
  for (const int64_t axis : RandomOrder(dice, shape.size())) {
    pad.axes.push_back(dice.Coin() ? axis : axis - static_cast<int64_t>(shape.size()));
    pad.pads.push_back(dice.Int(-1, 4));
    behind.push_back(dice.Int(-1, 4));
  }
  pad.pads.insert(pad.pads.end(), behind.begin(), behind.end());
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kPad, {x}, pad);
}

GradientCase Gather(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 3);
  const int64_t axis = RandomAxis(dice, shape);
  const std::string x = writer.Input(dice.Uniform(shape));
  Tensor indices = RandomIndices(dice, RandomShape(dice, 0, 2), shape[FromFront(axis, shape)]);
  return writer.Op(OpType::kGather, {x, writer.Input(std::move(indices), false)}, GatherAttributes{axis});
}

GradientCase GatherElements(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 3);
  const int64_t axis = RandomAxis(dice, shape);
  const std::string x = writer.Input(dice.Uniform(shape));
  Tensor indices = RandomIndices(dice, ElementIndices(dice, shape, axis), shape[FromFront(axis, shape)]);
  return writer.Op(OpType::kGatherElements, {x, writer.Input(std::move(indices), false)}, GatherAttributes{axis});
}

GradientCase GatherNd(CaseNumbers& dice) {
  CaseWriter writer;
  // Equal dimensions, so that any index fits any of them.
  const Shape shape(static_cast<size_t>(dice.Int(1, 4)), dice.Int(2, 3));
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t batch = dice.Int(0, std::min<int64_t>(rank - 1, 2));
  Shape indices(shape.begin(), shape.begin() + batch);
  if (dice.Coin()) indices.push_back(dice.Int(1, 4));
  indices.push_back(dice.Int(1, rank - batch));
  const std::string x = writer.Input(dice.Uniform(shape));
  const std::string i = writer.Input(RandomIndices(dice, indices, shape[0]), false);
  return writer.Op(OpType::kGatherND, {x, i}, GatherNdAttributes{batch});
}

constexpr OpCase kMovement[] = {
    {OpType::kFlatten, Flatten},
    {OpType::kReshape, Reshape},
    {OpType::kExpand, Expand},
    {OpType::kSqueeze, Squeeze},
    {OpType::kUnsqueeze, Unsqueeze},
    {OpType::kTranspose, Transpose},
    {OpType::kDepthToSpace, DepthToSpace},
    {OpType::kSpaceToDepth, SpaceToDepth},
    {OpType::kConcat, Concat},
    {OpType::kSplit, Split},
    {OpType::kSlice, Slice},
    {OpType::kTile, Tile},
    {OpType::kPad, Pad},
    {OpType::kGather, Gather},
    {OpType::kGatherElements, GatherElements},
    {OpType::kGatherND, GatherNd},
};

}  // namespace

absl::Span<const OpCase> MovementCases() { return kMovement; }

}  // namespace lockstep
