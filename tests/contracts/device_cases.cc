#include "tests/contracts/device_cases.h"

#include <algorithm>
#include <utility>

#include "common/graph/passes/training_graph.h"
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

void MakeGemm(Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const int64_t m = dice.Roll(1, 40), n = dice.Roll(1, 40), k = dice.Roll(1, 60);
  GemmAttributes attributes{.trans_a = dice.Flip(), .trans_b = dice.Flip()};
  std::vector<std::string> inputs = {b.In(attributes.trans_a ? Shape{k, m} : Shape{m, k}),
                                     b.In(attributes.trans_b ? Shape{n, k} : Shape{k, n})};
  if (dice.Flip()) {
    const std::vector<Shape> choices = {{n}, {1, n}, {m, n}, {m, 1}, {}, {1}};
    inputs.push_back(b.In(choices[static_cast<size_t>(dice.Roll(0, 5))]));
  }
  if (dice.Roll(0, 3) == 0) attributes.alpha = 0.5;
  if (dice.Roll(0, 3) == 0) attributes.beta = 2.0;
  c.terms = k + 2;
  c.sums_of_products = true;
  const std::string y = b.Op(OpType::kGemm, inputs, attributes)[0];
  // A ReLU behind it may be fused, but only where nothing else reads the product.
  if (dice.Flip()) {
    c.graph.outputs.clear();
    b.Op(OpType::kRelu, {y}, NoAttributes());
  }
}

void MakeMatMul(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const int64_t m = dice.Roll(1, 20), n = dice.Roll(1, 20), k = dice.Roll(1, 30);
  const Shape batch = RandomShape(dice, 0, 2, 4);
  BatchMatMulAttributes attributes;
  if (op == OpType::kBatchMatMul) attributes = {dice.Flip(), dice.Flip()};
  Shape a = dice.Flip() ? batch : Broadcastable(dice, batch);
  Shape w = dice.Flip() ? batch : Broadcastable(dice, batch);
  for (const int64_t extent : {attributes.trans_a ? k : m, attributes.trans_a ? m : k}) a.push_back(extent);
  for (const int64_t extent : {attributes.trans_b ? n : k, attributes.trans_b ? k : n}) w.push_back(extent);
  if (op == OpType::kMatMul && dice.Roll(0, 4) == 0) a = {k};
  if (op == OpType::kMatMul && dice.Roll(0, 4) == 0) w = {k};
  c.terms = k;
  c.sums_of_products = true;
  const OpAttributes any = op == OpType::kBatchMatMul ? OpAttributes(attributes) : OpAttributes(NoAttributes());
  const std::string left = b.In(a);
  b.Op(op, {left, b.In(w)}, any);
}

void MakeSoftmax(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 1, 4, 12);
  const auto rank = static_cast<int64_t>(shape.size());
  const SoftmaxAttributes attributes{.axis = dice.Roll(-rank, rank - 1)};
  c.terms = 12;
  const std::string y = b.Op(OpType::kSoftmax, {b.In(shape)}, attributes)[0];
  if (op == OpType::kSoftmaxGrad) b.Op(op, {b.In(shape), y}, attributes);
}

void MakeCrossEntropy(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  CrossEntropyAttributes attributes;
  attributes.reduction = static_cast<Reduction>(dice.Roll(0, op == OpType::kLossWeights ? 1 : 2));
  // A mean over ignored labels alone is NaN.
  if (dice.Flip()) attributes.ignore_index = attributes.reduction != Reduction::kMean && dice.Flip() ? 1 : -100;
  Shape scores = {dice.Roll(1, 9), dice.Roll(3, 10)};
  for (int64_t i = dice.Roll(0, 2); i > 0; --i) scores.push_back(dice.Roll(1, 4));
  Shape labels = scores;
  labels.erase(labels.begin() + 1);
  c.terms = NumElements(scores);
  const std::string label = b.In(labels, dice.Flip() ? DType::kI64 : DType::kI32);
  std::vector<std::string> weights;
  if (dice.Flip()) weights.push_back(b.In({scores[1]}));
  std::vector<std::string> inputs = {label};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  if (op == OpType::kLossWeights) {
    b.Op(op, inputs, attributes);
    return;
  }
  inputs.insert(inputs.begin(), b.In(scores));
  const auto forward = b.Op(OpType::kSoftmaxCrossEntropyLoss, inputs, attributes, 3);
  if (op == OpType::kSoftmaxCrossEntropyLoss) return;
  const bool statistics = dice.Flip();
  if (!statistics) inputs[0] = forward[1];
  inputs.insert(inputs.begin(), b.In(b.ShapeOf(forward[0])));
  if (statistics) {
    inputs.resize(4);
    inputs.push_back(forward[2]);
  }
  b.Op(op, inputs, attributes);
}

void MakePointwise(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  PointwiseLossAttributes attributes{.kind = static_cast<PointwiseLossKind>(dice.Roll(0, 3)),
                                     .reduction = static_cast<Reduction>(dice.Roll(0, 2)),
                                     .delta = 0.25};
  const Shape shape = RandomShape(dice, 1, 3);
  c.terms = NumElements(shape);
  const std::string x = b.In(shape);
  const std::string target = b.In(shape);
  const std::string loss = b.Op(OpType::kPointwiseLoss, {x, target}, attributes)[0];
  if (op == OpType::kPointwiseLossGrad) b.Op(op, {b.In(b.ShapeOf(loss)), x, target}, attributes);
}

void MakeDropout(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 1, 3, 30);
  if (op == OpType::kDropout) {
    b.Op(op, {b.In(shape)}, DropoutAttributes());
    return;
  }
  const DropoutAttributes attributes{.ratio = 0.1 * static_cast<double>(dice.Roll(0, 9)), .stream = 77};
  const std::string x = b.In(shape);
  const auto forward = b.Op(OpType::kDropoutTraining, {x, b.In({4}, DType::kI64, kRandomInput)}, attributes, 2);
  if (op == OpType::kDropoutGrad) b.Op(op, {b.In(shape), forward[1]}, attributes);
}

void MakeRandomLike(OpType op, Dice& dice, CaseBuilder& b) {
  const Shape shape = RandomShape(dice, 0, 3, 30);
  RandomLikeAttributes attributes{.a = -0.5, .b = 2.5, .stream = static_cast<uint64_t>(dice.Roll(0, 99))};
  const std::string x = dice.Flip() ? b.In(shape) : "";
  if (x.empty()) attributes.shape = shape;
  b.Op(op, {x, b.In({4}, DType::kI64, kRandomInput)}, attributes);
}

void MakeReduce(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  Shape shape = RandomShape(dice, 1, 4, 12);
  if (dice.Roll(0, 3) == 0) shape.back() = 300;
  ReduceAttributes attributes{.keep_dims = dice.Flip(), .noop_with_empty_axes = dice.Roll(0, 4) == 0};
  for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis) {
    if (dice.Flip()) attributes.axes.push_back(dice.Flip() ? axis : axis - static_cast<int64_t>(shape.size()));
  }
  c.terms = 1;
  c.sums_of_products = true;
  b.Op(op, {b.In(shape)}, attributes);
}

void MakeMaskedSum(Dice& dice, CaseBuilder& b, DeviceCase& c) {
  const Shape shape = RandomShape(dice, 1, 3);
  const std::string values = b.In(shape);
  c.terms = NumElements(shape);
  b.Op(OpType::kMaskedSum, {values, b.In({shape[0]}, DType::kF32, kMaskInput)}, NoAttributes());
}

void MakeCountCorrect(Dice& dice, CaseBuilder& b) {
  const Shape scores = {dice.Roll(1, 9), dice.Roll(2, 9)};
  const std::string x = b.In(scores);
  const std::string labels = b.In({scores[0]}, DType::kI64);
  const std::string mask = b.In({scores[0]}, DType::kF32, kMaskInput);
  b.Op(OpType::kCountCorrect, {x, labels, mask}, CountCorrectAttributes{.ignore_index = 1}, 3);
}

}  // namespace

DeviceCase RandomCase(OpType op, Dice& dice) {
  DeviceCase c;
  CaseBuilder b(&c);
  switch (op) {
    case OpType::kGemm:
      MakeGemm(dice, b, c);
      break;
    case OpType::kMatMul:
    case OpType::kBatchMatMul:
      MakeMatMul(op, dice, b, c);
      break;
    case OpType::kSoftmax:
    case OpType::kSoftmaxGrad:
      MakeSoftmax(op, dice, b, c);
      break;
    case OpType::kSoftmaxCrossEntropyLoss:
    case OpType::kSoftmaxCrossEntropyLossGrad:
    case OpType::kLossWeights:
      MakeCrossEntropy(op, dice, b, c);
      break;
    case OpType::kPointwiseLoss:
    case OpType::kPointwiseLossGrad:
      MakePointwise(op, dice, b, c);
      break;
    case OpType::kDropout:
    case OpType::kDropoutTraining:
    case OpType::kDropoutGrad:
      MakeDropout(op, dice, b);
      break;
    case OpType::kUniformLike:
    case OpType::kNormalLike:
      MakeRandomLike(op, dice, b);
      break;
    case OpType::kReduceSum:
    case OpType::kReduceMean:
      MakeReduce(op, dice, b, c);
      break;
    case OpType::kMaskedSum:
      MakeMaskedSum(dice, b, c);
      break;
    case OpType::kCountCorrect:
      MakeCountCorrect(dice, b);
      break;
    default:
      LS_CHECK(MakeActivationCase(op, dice, b, c) || MakeAttentionCase(op, dice, b, c) ||
                   MakeElementwiseCase(op, dice, b, c) || MakeMovementCase(op, dice, b, c) ||
                   MakeIndexingCase(op, dice, b, c) || MakeNormalisationCase(op, dice, b, c) ||
                   MakeReductionCase(op, dice, b, c) || MakeSpatialCase(op, dice, b, c),
               "every op of the closed set has a case");
  }
  return c;
}

}  // namespace lockstep
