// Ops that are computed element by element.
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

// What the contract's inputs are filled with: their names say it.
constexpr char kPositive[] = "variance";

void MakeBinary(OpType op, OpAttributes attributes, DType dtype, Dice& dice, CaseBuilder& b) {
  // Sometimes more dimensions than the CPU's loops take, of which no two behave alike.
  if (dice.Roll(0, 9) == 0) {
    const std::string odd = b.In({2, 1, 2, 1, 2, 1, 3, 1}, dtype);
    b.Op(op, {odd, b.In({1, 2, 1, 2, 1, 2, 1, 3}, dtype)}, attributes);
    return;
  }
  // Sometimes rows long enough for whole vectors.
  const Shape shape = RandomShape(dice, 0, 4, dice.Roll(0, 3) == 0 ? 40 : 7);
  const std::string whole = b.In(dice.Roll(0, 3) == 0 ? Broadcastable(dice, shape) : shape, dtype);
  const std::string part = b.In(dice.Flip() ? shape : Broadcastable(dice, shape), dtype);
  b.Op(op, dice.Flip() ? std::vector<std::string>{whole, part} : std::vector<std::string>{part, whole}, attributes);
}

void MakeQuotient(OpType op, OpAttributes attributes, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4);
  const std::string x = b.In(dice.Flip() ? shape : Broadcastable(dice, shape));
  b.Op(op, {x, b.In(dice.Flip() ? shape : Broadcastable(dice, shape), DType::kF32, kPositive)}, attributes);
}

void MakePow(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4);
  const std::string base = b.In(shape, DType::kF32, kPositive);
  constexpr float kNumbers[] = {0.0f, 0.5f, 1.0f, 2.0f, 3.0f, -1.7f};
  const std::string exponent = dice.Flip() ? b.Number(kNumbers[dice.Roll(0, 5)])
                                           : b.In(Broadcastable(dice, shape), dice.Flip() ? DType::kF32 : DType::kI64);
  if (op == OpType::kPow) b.Op(op, {base, exponent}, NoAttributes());
  if (op == OpType::kPowGrad) b.Op(op, {b.In(shape), base, exponent}, NoAttributes(), dice.Flip() ? 2 : 1);
}

void MakeExtremum(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4);
  std::vector<std::string> inputs;
  for (int64_t i = dice.Roll(1, 4); i > 0; --i) inputs.push_back(b.In(Broadcastable(dice, shape)));
  b.Op(op, inputs, NoAttributes());
}

void MakeExtremumGrad(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4);
  b.Op(op, {b.In(shape), b.In(shape), b.In(Broadcastable(dice, shape))}, NoAttributes(), dice.Flip() ? 2 : 1);
}

void MakeUnary(OpType op, OpAttributes attributes, DType dtype, Dice& dice, CaseBuilder& b) {
  b.Op(op, {b.In(RandomShape(dice, 0, 4, 9), dtype)}, attributes);
}

void MakePositive(OpType op, Dice& dice, CaseBuilder& b) {
  b.Op(op, {b.In(RandomShape(dice, 0, 4, 9), DType::kF32, kPositive)}, NoAttributes());
}

// A function, or its gradient, of what `inner` gives: numbers in its domain.
void MakeOf(OpType inner, OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4, 9);
  const std::string x = b.Op(inner, {b.In(shape)}, NoAttributes())[0];
  const bool gradient = SchemaOf(op).min_inputs == 2;
  b.Op(op, gradient ? std::vector<std::string>{b.In(shape), x} : std::vector<std::string>{x}, NoAttributes());
}

// dX from dY and X or Y.
void MakeGradient(OpType op, OpAttributes attributes, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4, 9);
  const std::string dy = b.In(shape);
  b.Op(op, {dy, b.In(shape)}, attributes);
}

void MakeWhere(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 4, dice.Roll(0, 3) == 0 ? 30 : 7);
  const auto part = [&] { return dice.Flip() ? shape : Broadcastable(dice, shape); };
  const std::string condition = b.In(part(), DType::kBool);
  if (op == OpType::kWhereGrad) {
    b.Op(op, {b.In(shape), condition}, NoAttributes(), dice.Flip() ? 2 : 1);
    return;
  }
  const DType dtype = dice.Roll(0, 3) == 0 ? DType::kI64 : DType::kF32;
  const std::string x = b.In(part(), dtype);
  b.Op(op, {condition, x, b.In(part(), dtype)}, NoAttributes());
}

DType AnyType(Dice& dice) {
  constexpr DType kTypes[] = {DType::kF32, DType::kI64, DType::kI32, DType::kBool};
  return kTypes[dice.Roll(0, 3)];
}

void MakeCast(Dice& dice, CaseBuilder& b) {
  const DType from = AnyType(dice);
  MakeUnary(OpType::kCast, CastAttributes{AnyType(dice)}, from, dice, b);
}

bool MakeLogicCase(OpType op, Dice& dice, CaseBuilder& b) {
  switch (op) {
    case OpType::kEqual:
    case OpType::kGreater:
    case OpType::kGreaterOrEqual:
    case OpType::kLess:
    case OpType::kLessOrEqual:
      MakeBinary(op, NoAttributes(), dice.Flip() ? DType::kF32 : DType::kI64, dice, b);
      return true;
    case OpType::kAnd:
    case OpType::kOr:
    case OpType::kXor:
      MakeBinary(op, NoAttributes(), DType::kBool, dice, b);
      return true;
    case OpType::kNot:
      MakeUnary(op, NoAttributes(), DType::kBool, dice, b);
      return true;
    case OpType::kIsNaN:
      MakeUnary(op, NoAttributes(), DType::kF32, dice, b);
      return true;
    case OpType::kIsInf:
      MakeUnary(op, IsInfAttributes(), DType::kF32, dice, b);
      return true;
    case OpType::kCast:
      MakeCast(dice, b);
      return true;
    case OpType::kWhere:
    case OpType::kWhereGrad:
      MakeWhere(op, dice, b);
      return true;
    default:
      return false;
  }
}

bool MakeArithmeticCase(OpType op, Dice& dice, CaseBuilder& b) {
  switch (op) {
    case OpType::kAdd:
    case OpType::kSub:
    case OpType::kMul:
      MakeBinary(op, NoAttributes(), dice.Roll(0, 3) == 0 ? DType::kI64 : DType::kF32, dice, b);
      return true;
    case OpType::kDiv:
      MakeQuotient(op, NoAttributes(), dice, b);
      return true;
    case OpType::kMod:
      MakeQuotient(op, ModAttributes{true}, dice, b);
      return true;
    case OpType::kPow:
    case OpType::kPowGrad:
      MakePow(op, dice, b);
      return true;
    case OpType::kMin:
    case OpType::kMax:
      MakeExtremum(op, dice, b);
      return true;
    case OpType::kMinGrad:
    case OpType::kMaxGrad:
      MakeExtremumGrad(op, dice, b);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool MakeElementwiseCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase&) {
  if (MakeLogicCase(op, dice, b) || MakeArithmeticCase(op, dice, b)) return true;
  switch (op) {
    case OpType::kScale:
      MakeUnary(op, ScaleAttributes{.factor = -0.3}, DType::kF32, dice, b);
      return true;
    case OpType::kNeg:
    case OpType::kAbs:
    case OpType::kSign:
    case OpType::kExp:
    case OpType::kErf:
    case OpType::kSin:
    case OpType::kCos:
    case OpType::kTan:
    case OpType::kAtan:
    case OpType::kSinh:
    case OpType::kCosh:
    case OpType::kAsinh:
    case OpType::kFloor:
    case OpType::kCeil:
    case OpType::kRound:
    case OpType::kIdentity:
      MakeUnary(op, NoAttributes(), DType::kF32, dice, b);
      return true;
    case OpType::kAsin:
    case OpType::kAcos:
    case OpType::kAtanh:
    case OpType::kAsinGrad:
    case OpType::kAtanhGrad:
      MakeOf(OpType::kSin, op, dice, b);
      return true;
    case OpType::kAcosh:
    case OpType::kAcoshGrad:
      MakeOf(OpType::kCosh, op, dice, b);
      return true;
    case OpType::kReciprocal:
    case OpType::kSqrt:
    case OpType::kLog:
      MakePositive(op, dice, b);
      return true;
    case OpType::kErfGrad:
    case OpType::kAtanGrad:
    case OpType::kAsinhGrad:
      MakeGradient(op, NoAttributes(), dice, b);
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep
