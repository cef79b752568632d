// Ops that move elements or pick them by index.
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

void MakeShape(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4, 9);
  const std::string x = b.In(shape);
  if (op == OpType::kFlatten) {
    b.Op(op, {x}, FlattenAttributes{.axis = dice.Roll(0, static_cast<int64_t>(shape.size()))});
  } else if (op == OpType::kReshape) {
    b.Op(op, {x}, ReshapeAttributes{.shape = {-1}});
  } else {
    Shape wider = shape;
    for (int64_t& extent : wider) extent = extent == 1 ? dice.Roll(1, 4) : extent;
    wider.insert(wider.begin(), dice.Roll(1, 3));
    b.Op(op, {x}, ExpandAttributes{.shape = wider});
  }
}

}  // namespace

bool MakeMovementCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase&) {
  switch (op) {
    case OpType::kFlatten:
    case OpType::kReshape:
    case OpType::kExpand:
      MakeShape(op, dice, b);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
