// Every differentiable op of the set, over random shapes and attributes. A failure prints its seed; setting
// LOCKSTEP_TEST_SEED replays that one alone.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>
#include <utility>

#include "common/graph/ops/schema.h"
#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

template <OpType kOp>
GradientCase Binary(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 4);
  Shape a = shape;
  Shape b = Broadcastable(dice, shape);
  if (dice.Coin()) std::swap(a, b);
  // Once in a while both operands are the same value.
  const std::string first = writer.Input(dice.Uniform(a));
  if (dice.Int(0, 4) == 0) return writer.Op(kOp, {first, first});
  const std::string second = writer.Input(dice.Uniform(b));
  return writer.Op(kOp, {first, second});
}

GradientCase Scale(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 0, 3)));
  return writer.Op(OpType::kScale, {x}, ScaleAttributes{dice.Unit()});
}

GradientCase Gemm(CaseNumbers& dice) {
  CaseWriter writer;
  const int64_t m = dice.Int(1, 4), k = dice.Int(1, 4), n = dice.Int(1, 4);
  const GemmAttributes gemm{dice.Unit(), dice.Coin() ? 1.0 : dice.Unit(), dice.Coin(), dice.Coin()};
  std::vector<std::string> inputs = {writer.Input(dice.Uniform(gemm.trans_a ? Shape{k, m} : Shape{m, k})),
                                     writer.Input(dice.Uniform(gemm.trans_b ? Shape{n, k} : Shape{k, n}))};
  if (dice.Coin()) inputs.push_back(writer.Input(dice.Uniform(Broadcastable(dice, {m, n}))));
  return writer.Op(OpType::kGemm, inputs, gemm);
}

GradientCase MatMul(CaseNumbers& dice) {
  CaseWriter writer;
  const int64_t k = dice.Int(1, 4);
  const Shape batch = RandomShape(dice, 0, 2);
  Shape a = Broadcastable(dice, batch);
  Shape b = dice.Coin() ? batch : Broadcastable(dice, batch);
  a.insert(a.end(), {dice.Int(1, 3), k});
  b.insert(b.end(), {k, dice.Int(1, 3)});
  if (dice.Int(0, 3) == 0) a = {k};
  if (dice.Int(0, 3) == 0) b = {k};
  const std::string left = writer.Input(dice.Uniform(a));
  const std::string right = writer.Input(dice.Uniform(b));
  return writer.Op(OpType::kMatMul, {left, right});
}

GradientCase BatchMatMul(CaseNumbers& dice) {
  CaseWriter writer;
  const BatchMatMulAttributes product{dice.Coin(), dice.Coin()};
  const int64_t m = dice.Int(1, 3), k = dice.Int(1, 3), n = dice.Int(1, 3);
  const Shape batch = RandomShape(dice, 0, 2);
  Shape a = Broadcastable(dice, batch);
  Shape b = Broadcastable(dice, batch);
  const std::initializer_list<int64_t> mk = {m, k}, km = {k, m}, kn = {k, n}, nk = {n, k};
  a.insert(a.end(), product.trans_a ? km : mk);
  b.insert(b.end(), product.trans_b ? nk : kn);
  const std::string left = writer.Input(dice.Uniform(a));
  const std::string right = writer.Input(dice.Uniform(b));
  return writer.Op(OpType::kBatchMatMul, {left, right}, product);
}

GradientCase Softmax(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 1, 4);
  const auto rank = static_cast<int64_t>(shape.size());
  const std::string x = writer.Input(dice.Uniform(shape));
  return writer.Op(OpType::kSoftmax, {x}, SoftmaxAttributes{dice.Int(-rank, rank - 1)});
}

Reduction RandomReduction(CaseNumbers& dice) { return static_cast<Reduction>(dice.Int(0, 2)); }

GradientCase CrossEntropy(CaseNumbers& dice) {
  CaseWriter writer;
  Shape scores = RandomShape(dice, 2, 4);
  const int64_t classes = scores[1];
  Shape labels = scores;
  labels.erase(labels.begin() + 1);
  const std::string x = writer.Input(dice.Uniform(scores));
  CrossEntropyAttributes loss;
  loss.reduction = RandomReduction(dice);
  if (dice.Coin()) loss.ignore_index = -1;
  Tensor targets = Tensor::Zeros(dice.Coin() ? DType::kI64 : DType::kI32, labels);
  for (int64_t i = 0; i < targets.num_elements(); ++i) {
    // The first label always counts, so that a mean has something to divide by.
    const bool ignored = loss.ignore_index.has_value() && i > 0 && dice.Int(0, 3) == 0;
    const int64_t label = ignored ? -1 : dice.Int(0, classes - 1);
    if (targets.dtype() == DType::kI64) targets.elements<int64_t>()[i] = label;
    if (targets.dtype() == DType::kI32) targets.elements<int32_t>()[i] = static_cast<int32_t>(label);
  }
  std::vector<std::string> inputs = {x, writer.Input(std::move(targets), false)};
  if (dice.Coin()) {
    Tensor weights = dice.Uniform({classes});
    for (double& weight : weights.elements<double>()) weight += 1.5;
    inputs.push_back(writer.Input(std::move(weights), false));
  }
  GradientCase made = writer.Op(OpType::kSoftmaxCrossEntropyLoss, inputs, loss);
  // Now and then the logarithms are read too, or they alone.
  if (dice.Coin()) {
    made.graph.nodes[0].outputs.push_back("log_prob");
    made.outputs.push_back("log_prob");
    made.graph.outputs = {"log_prob"};  // that it is read decides the form in training
    if (dice.Coin()) made.outputs.erase(made.outputs.begin());
  }
  return made;
}

GradientCase PointwiseLoss(CaseNumbers& dice) {
  CaseWriter writer;
  const Shape shape = RandomShape(dice, 0, 3);
  // Differences lie away from 0 and from the bend of huber.
  Tensor prediction = dice.Distinct(shape);
  Tensor target = Tensor::Zeros(DType::kF64, shape);
  PointwiseLossAttributes loss;
  loss.kind = static_cast<PointwiseLossKind>(dice.Int(0, 3));
  loss.reduction = RandomReduction(dice);
  loss.delta = 0.5003;
  if (loss.kind == PointwiseLossKind::kBceWithLogits) {
    for (double& t : target.elements<double>()) t = 0.5 + 0.5 * dice.Unit();
  }
  const std::string x = writer.Input(std::move(prediction));
  const std::string t = writer.Input(std::move(target), false);
  return writer.Op(OpType::kPointwiseLoss, {x, t}, loss);
}

GradientCase DropoutOfChoices(CaseNumbers& dice) {
  CaseWriter writer;
  const std::string x = writer.Input(dice.Uniform(RandomShape(dice, 1, 4)));
  return writer.Op(OpType::kDropout, {x}, DropoutAttributes{0.5 + 0.4 * dice.Unit(), true, 77});
}

// MaxPool, DropoutOfChoices and BatchNormalization are differentiated in the forms that training gives them.
constexpr OpCase kCases[] = {
    {OpType::kAdd, Binary<OpType::kAdd>},
    {OpType::kSub, Binary<OpType::kSub>},
    {OpType::kMul, Binary<OpType::kMul>},
    {OpType::kScale, Scale},
    {OpType::kGemm, Gemm},
    {OpType::kMatMul, MatMul},
    {OpType::kBatchMatMul, BatchMatMul},
    {OpType::kSoftmax, Softmax},
    {OpType::kSoftmaxCrossEntropyLoss, CrossEntropy},
    {OpType::kPointwiseLoss, PointwiseLoss},
    {OpType::kDropoutTraining, DropoutOfChoices},
};

std::vector<OpCase> AllCases() {
  std::vector<OpCase> all(std::begin(kCases), std::end(kCases));
  for (const absl::Span<const OpCase> family :
       {ActivationCases(), AttentionCases(), ElementwiseCases(), MovementCases(), IndexingCases(), NormalisationCases(),
        ReductionCases(), SpatialCases()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

TEST_CASE("gradients: every op that can be differentiated is checked here", "[gradients]") {
  std::set<OpType> checked;
  for (const OpCase& op : AllCases()) checked.insert(op.op);
  for (const OpType op : AllOps()) {
    INFO(std::string(OpName(op)));
    CHECK((SchemaOf(op).gradient != nullptr) == (checked.count(op) == 1));
  }
}

TEST_CASE("gradients: every op agrees with central differences", "[gradients]") {
  const char* replay = std::getenv("LOCKSTEP_TEST_SEED");
  const uint64_t first = replay != nullptr ? std::strtoull(replay, nullptr, 10) : 1;
  const uint64_t last = replay != nullptr ? first : 40;
  for (const OpCase& op : AllCases()) {
    for (uint64_t seed = first; seed <= last; ++seed) {
      CaseNumbers dice(seed);
      INFO("op " << std::string(OpName(op.op)) << ", LOCKSTEP_TEST_SEED=" << seed);
      CHECK(CheckGradients(op.make(dice), seed) == "");
    }
  }
}

}  // namespace
}  // namespace lockstep
