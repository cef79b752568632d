// Arithmetic, functions of one operand, and choice.
#include <iterator>

#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

// Elements in [low, high).
Tensor Between(CaseNumbers& dice, const Shape& shape, double low, double high) {
  Tensor tensor = dice.Uniform(shape);
  for (double& x : tensor.elements<double>()) x = low + (high - low) * (x + 1) / 2;
  return tensor;
}

// The same with random signs.
Tensor OfAnySign(CaseNumbers& dice, const Shape& shape, double low, double high) {
  Tensor tensor = Between(dice, shape, low, high);
  for (double& x : tensor.elements<double>()) x = dice.Coin() ? x : -x;
  return tensor;
}

// Two shapes that broadcast, either of which may be the smaller one.
std::pair<Shape, Shape> TwoShapes(CaseNumbers& dice) {
  const Shape shape = RandomShape(dice, 0, 4);
  const Shape part = Broadcastable(dice, shape);
  return dice.Coin() ? std::pair(shape, part) : std::pair(part, shape);
}

GradientCase Div(CaseNumbers& dice) {
  CaseWriter writer;
  const auto [a, b] = TwoShapes(dice);
  const std::string left = writer.Input(dice.Uniform(a));
  return writer.Op(OpType::kDiv, {left, writer.Input(OfAnySign(dice, b, 0.5, 1.5))});
}

// Quotients lie between 0.28 and 0.7 above whole numbers.
GradientCase Mod(CaseNumbers& dice) {
  CaseWriter writer;
  const auto [a, b] = TwoShapes(dice);
  Tensor left = Between(dice, a, 0.3, 0.7);
  for (double& x : left.elements<double>()) {
    x += static_cast<double>(dice.Int(0, 2));
    x = dice.Coin() ? x : -x;
  }
  const std::string first = writer.Input(std::move(left));
  return writer.Op(OpType::kMod, {first, writer.Input(OfAnySign(dice, b, 1.0, 1.01))}, ModAttributes{true});
}

GradientCase Pow(CaseNumbers& dice) {
  CaseWriter writer;
  const auto [a, b] = TwoShapes(dice);
  if (dice.Coin()) {
    const std::string base = writer.Input(Between(dice, a, 0.5, 1.5));
    return writer.Op(OpType::kPow, {base, writer.Input(Between(dice, b, -2, 2))});
  }
  // A whole exponent takes negative bases; 0 makes the result flat.
  const std::string base = writer.Input(OfAnySign(dice, a, 0.5, 1.5));
  Tensor exponent = Tensor::Zeros(dice.Coin() ? DType::kI64 : DType::kF64, b);
  for (int64_t i = 0; i < exponent.num_elements(); ++i) {
    const int64_t whole = dice.Int(-2, 3);
    if (exponent.dtype() == DType::kI64) exponent.elements<int64_t>()[i] = whole;
    if (exponent.dtype() == DType::kF64) exponent.elements<double>()[i] = static_cast<double>(whole);
  }
  return writer.Op(OpType::kPow, {base, writer.Input(std::move(exponent), false)});
}

template <OpType kOp>
GradientCase Extremum(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 3);
  std::vector<std::string> inputs;
  for (int64_t i = dice.Int(1, 4); i > 0; --i) {
    inputs.push_back(writer.Input(dice.Uniform(Broadcastable(dice, shape)), i != 2 || dice.Coin()));
  }
  return writer.Op(kOp, inputs);
}

// Away from kinks at zero.
template <OpType kOp>
GradientCase Anywhere(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Distinct(RandomShape(dice, 0, 4)));
  return writer.Op(kOp, {x});
}

// Where -1 < x < 1, and beyond 1.
template <OpType kOp>
GradientCase Inside(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(Between(dice, RandomShape(dice, 0, 4), -0.9, 0.9));
  return writer.Op(kOp, {x});
}
template <OpType kOp>
GradientCase Beyond(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(Between(dice, RandomShape(dice, 0, 4), 1.2, 3.0));
  return writer.Op(kOp, {x});
}

// y = op(x) * x, where op takes nothing of x but its shape.
template <OpType kOp>
GradientCase Drawn(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 0, 4)));
  const RandomLikeAttributes attributes{.a = -1, .b = 2, .dtype = DType::kF64, .stream = 3};
  writer.made.graph.nodes.push_back({"draw", kOp, {x}, {"drawn"}, attributes});
  return writer.Op(OpType::kMul, {"drawn", x});
}

template <OpType kOp>
GradientCase Positive(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(Between(dice, RandomShape(dice, 0, 4), 0.5, 2.5));
  return writer.Op(kOp, {x});
}

// y = op(x) + x: all of the gradient comes from the second term.
template <OpType kOp>
GradientCase Flat(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(Between(dice, RandomShape(dice, 0, 4), -3, 3));
  writer.made.graph.nodes.push_back({"flat", kOp, {x}, {"steps"}, NoAttributes{}});
  return writer.Op(OpType::kAdd, {"steps", x});
}

GradientCase Cast(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 0, 4)));
  if (dice.Coin()) return writer.Op(OpType::kCast, {x}, CastAttributes{DType::kF64});
  // What went through an integer moves nothing.
  writer.made.graph.nodes.push_back({"whole", OpType::kCast, {x}, {"i"}, CastAttributes{DType::kI32}});
  writer.made.graph.nodes.push_back({"back", OpType::kCast, {"i"}, {"w"}, CastAttributes{DType::kF64}});
  return writer.Op(OpType::kMul, {"w", x});
}

GradientCase Where(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 4);
  Tensor condition = Tensor::Zeros(DType::kBool, dice.Coin() ? shape : Broadcastable(dice, shape));
  for (bool& holds : condition.elements<bool>()) holds = dice.Coin();
  const std::string c = writer.Input(std::move(condition), false);
  const std::string x = writer.Input(dice.Uniform(dice.Coin() ? shape : Broadcastable(dice, shape)));
  return writer.Op(OpType::kWhere, {c, x, writer.Input(dice.Uniform(Broadcastable(dice, shape)), dice.Coin())});
}

constexpr OpCase kElementwise[] = {
    {OpType::kDiv, Div},
    {OpType::kMod, Mod},
    {OpType::kPow, Pow},
    {OpType::kMin, Extremum<OpType::kMin>},
    {OpType::kMax, Extremum<OpType::kMax>},
    {OpType::kNeg, Anywhere<OpType::kNeg>},
    {OpType::kAbs, Anywhere<OpType::kAbs>},
    {OpType::kReciprocal, Positive<OpType::kReciprocal>},
    {OpType::kSqrt, Positive<OpType::kSqrt>},
    {OpType::kExp, Anywhere<OpType::kExp>},
    {OpType::kLog, Positive<OpType::kLog>},
    {OpType::kErf, Anywhere<OpType::kErf>},
    {OpType::kSin, Anywhere<OpType::kSin>},
    {OpType::kCos, Anywhere<OpType::kCos>},
    {OpType::kTan, Anywhere<OpType::kTan>},
    {OpType::kAsin, Inside<OpType::kAsin>},
    {OpType::kAcos, Inside<OpType::kAcos>},
    {OpType::kAtan, Anywhere<OpType::kAtan>},
    {OpType::kSinh, Anywhere<OpType::kSinh>},
    {OpType::kCosh, Anywhere<OpType::kCosh>},
    {OpType::kAsinh, Anywhere<OpType::kAsinh>},
    {OpType::kAcosh, Beyond<OpType::kAcosh>},
    {OpType::kAtanh, Inside<OpType::kAtanh>},
    {OpType::kUniformLike, Drawn<OpType::kUniformLike>},
    {OpType::kNormalLike, Drawn<OpType::kNormalLike>},
    {OpType::kSign, Flat<OpType::kSign>},
    {OpType::kFloor, Flat<OpType::kFloor>},
    {OpType::kCeil, Flat<OpType::kCeil>},
    {OpType::kRound, Flat<OpType::kRound>},
    {OpType::kCast, Cast},
    {OpType::kWhere, Where},
};

}  // namespace

absl::Span<const OpCase> ElementwiseCases() { return kElementwise; }

}  // namespace lockstep
