// Ops that move elements or pick them by index.
#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

GradientCase Flatten(Dice& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kFlatten, {x}, FlattenAttributes{dice.Int(-rank, rank)});
}

GradientCase Reshape(Dice& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 2, 4);
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kReshape, {x}, ReshapeAttributes{dice.Coin() ? Shape{0, -1} : Shape{-1}, false});
}

GradientCase Expand(Dice& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const std::string x = writer.Input(dice.Uniform(Broadcastable(dice, shape)));
  return writer.Op(OpType::kExpand, {x}, ExpandAttributes{shape});
}

constexpr OpCase kCases[] = {
    {OpType::kFlatten, Flatten},
    {OpType::kReshape, Reshape},
    {OpType::kExpand, Expand},
};

}  // namespace

absl::Span<const OpCase> MovementCases() { return kCases; }

}  // namespace lockstep
