// The loss of samples with two labels, against its definition written out here: share * the loss of the own label +
// (1 - share) * that of the partner's, its gradient, and that evaluations know nothing of it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "tests/gradients/gradient_check.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

constexpr int64_t kSamples = 6, kClasses = 5, kFeatures = 3, kIgnoredClass = -100;

// Scores are a table times the inputs, in float64; labels may be a column.
MetaGraph LinearModel(double smoothing, bool column) {
  MetaGraphRequest request;
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, kFeatures}}};
  graph.variables = {{"table", DType::kF32, {kFeatures, kClasses}, VariableKind::kParameter, {}}};
  graph.nodes = {{"scores", OpType::kMatMul, {"x", "table"}, {"scores"}, NoAttributes{}}};
  graph.outputs = {"scores"};
  request.imported = graph;
  const Shape labels = column ? Shape{kBatchDim, 1} : Shape{kBatchDim};
  request.inputs = {{"x", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, kFeatures}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, labels, {}}};
  request.loss.ignore_index = kIgnoredClass;
  request.loss.label_smoothing = smoothing;
  request.loss.mixes_labels = true;
  request.pass_batch = kSamples;
  MetaGraph metagraph = BuildMetaGraph(request).value();
  metagraph.forward.inputs[0].dtype = DType::kF64;
  metagraph.forward.variables[0].dtype = DType::kF64;
  return metagraph;
}

struct Sample {
  std::vector<double> scores;
  int64_t label = 0, partner = 0;
  double share = 0;
};

// PyTorch's cross entropy against a target of shares: a one-hot vector per label, times its share, then smoothed.
// Returns the loss, and adds its derivative by the scores to `gradient`.
double ByDefinition(const Sample& sample, double smoothing, double* weight, std::vector<double>* gradient) {
  double total = 0;
  for (const double score : sample.scores) total += std::exp(score);
  std::vector<double> target(kClasses, 0.0);
  for (const auto& [label, share] :
       {std::pair(sample.label, sample.share), std::pair(sample.partner, 1 - sample.share)}) {
    if (label == kIgnoredClass) continue;
    *weight += share;
    for (double& of_class : target) of_class += share * smoothing / kClasses;
    target[static_cast<size_t>(label)] += share * (1 - smoothing);
  }
  double loss = 0, sum = 0;
  for (const double of_class : target) sum += of_class;
  gradient->resize(kClasses);
  for (size_t c = 0; c < kClasses; ++c) {
    loss += target[c] * (std::log(total) - sample.scores[c]);
    (*gradient)[c] = sum * std::exp(sample.scores[c]) / total - target[c];
  }
  return loss;
}

void Put(Tensor& tensor, const Tensor& from) {
  REQUIRE(tensor.byte_size() == from.byte_size());
  std::memcpy(tensor.data(), from.data(), static_cast<size_t>(from.byte_size()));
}

std::unique_ptr<GraphRunner> MixedRunner(const Graph& graph, CaseNumbers& dice) {
  auto runner = GraphRunner::Make(graph).value();
  Put(runner->value("x"), dice.Uniform({kSamples, kFeatures}));
  Put(runner->value("table"), dice.Uniform({kFeatures, kClasses}));
  for (const char* const name : {"labels", kPartnerLabelInput}) {
    for (int64_t& label : runner->value(name).elements<int64_t>()) label = dice.Int(0, kClasses - 1);
  }
  for (double& share : runner->value(kShareInput).elements<double>()) share = 0.5 + 0.5 * dice.Unit();
  return runner;
}

double Number(GraphRunner& runner, const char* name) { return runner.value(name).elements<double>()[0]; }

}  // namespace

TEST_CASE("mixed loss: both labels count by their shares, smoothed or ignored as others are", "[loss]") {
  const uint64_t seed = GENERATE(1, 2, 3);
  const double smoothing = GENERATE(0.0, 0.2);
  const bool column = GENERATE(false, true);
  CAPTURE(seed, smoothing, column);
  CaseNumbers dice(seed);
  const Graph graph = MakeTrainingGraph(LinearModel(smoothing, column)).value().graph;
  const auto runner = MixedRunner(graph, dice);
  runner->value("labels").elements<int64_t>()[2] = kIgnoredClass;
  runner->value(kPartnerLabelInput).elements<int64_t>()[3] = kIgnoredClass;
  runner->value("labels").elements<int64_t>()[4] = runner->value(kPartnerLabelInput).elements<int64_t>()[4] =
      kIgnoredClass;
  REQUIRE(runner->Run().ok());

  const auto x = runner->value("x").elements<double>(), table = runner->value("table").elements<double>();
  double loss = 0, weight = 0;
  std::vector<double> gradient(kFeatures * kClasses, 0.0);
  for (size_t i = 0; i < kSamples; ++i) {
    Sample sample{.scores = std::vector<double>(kClasses, 0.0),
                  .label = runner->value("labels").elements<int64_t>()[i],
                  .partner = runner->value(kPartnerLabelInput).elements<int64_t>()[i],
                  .share = runner->value(kShareInput).elements<double>()[i]};
    for (size_t e = 0; e < kFeatures * kClasses; ++e) {
      sample.scores[e % kClasses] += x[i * kFeatures + e / kClasses] * table[e];
    }
    std::vector<double> by_scores;
    loss += ByDefinition(sample, smoothing, &weight, &by_scores);
    for (size_t e = 0; e < gradient.size(); ++e) {
      gradient[e] += x[i * kFeatures + e / kClasses] * by_scores[e % kClasses];
    }
  }
  CHECK(Number(*runner, kLossSum) == Approx(loss).epsilon(1e-12));
  CHECK(Number(*runner, kLossDenominator) == Approx(weight).epsilon(1e-12));
  const auto found = runner->value(GradientName("table")).elements<double>();
  for (size_t e = 0; e < gradient.size(); ++e) CHECK(std::abs(found[e] - gradient[e]) < 1e-12);
}

TEST_CASE("mixed loss: its gradient is its slope", "[loss]") {
  const double smoothing = GENERATE(0.0, 0.2);
  CaseNumbers dice(5);
  const Graph graph = MakeTrainingGraph(LinearModel(smoothing, false)).value().graph;
  const auto runner = MixedRunner(graph, dice);
  const auto table = runner->value("table").elements<double>();
  REQUIRE(runner->Run().ok());
  const auto given = runner->value(GradientName("table")).elements<double>();
  const std::vector<double> gradient(given.begin(), given.end());
  constexpr double kDistance = 1e-6;
  for (size_t e = 0; e < table.size(); ++e) {
    const double at = table[e];
    double sides[2];
    for (const int side : {0, 1}) {
      table[e] = at + (side == 0 ? -kDistance : kDistance);
      REQUIRE(runner->Run().ok());
      sides[side] = Number(*runner, kLossSum);
    }
    table[e] = at;
    CHECK(std::abs((sides[1] - sides[0]) / (2 * kDistance) - gradient[e]) < 1e-8);
  }
}

TEST_CASE("mixed loss: a share of 1 is the loss of the label alone, and float32 weights add up to the samples",
          "[loss]") {
  MetaGraph mixed = LinearModel(0, false);
  mixed.forward.inputs[0].dtype = mixed.forward.variables[0].dtype = DType::kF32;
  MetaGraph plain = mixed;
  plain.loss.mixes_labels = false;
  const auto run = [](const MetaGraph& metagraph, float share) {
    auto runner = GraphRunner::Make(MakeTrainingGraph(metagraph).value().graph).value();
    CaseNumbers dice(9);
    for (const char* const name : {"x", "table"}) {
      for (float& value : runner->value(name).elements<float>()) value = static_cast<float>(dice.Unit());
    }
    for (int64_t& label : runner->value("labels").elements<int64_t>()) label = dice.Int(0, kClasses - 1);
    if (metagraph.loss.mixes_labels) {
      for (int64_t& label : runner->value(kPartnerLabelInput).elements<int64_t>()) label = dice.Int(0, kClasses - 1);
      const auto shares = runner->value(kShareInput).elements<float>();
      for (size_t i = 0; i < shares.size(); ++i) shares[i] = share == 1 ? 1 : static_cast<float>(i + 1) * share;
    }
    REQUIRE(runner->Run().ok());
    return runner;
  };

  const auto alone = run(plain, 1), all_own = run(mixed, 1), between = run(mixed, 0.125f + 0x1p-24f);

  CHECK(all_own->value(kLossSum).elements<float>()[0] == Approx(alone->value(kLossSum).elements<float>()[0]));
  CHECK(all_own->value(kLossDenominator).elements<float>()[0] == kSamples);
  CHECK(between->value(kLossDenominator).elements<float>()[0] == kSamples);
  CHECK(between->value(kLossSum).elements<float>()[0] != all_own->value(kLossSum).elements<float>()[0]);
}

TEST_CASE("mixed loss: evaluations have one label and no share", "[loss]") {
  MetaGraph mixed = LinearModel(0.1, false);
  MetaGraph plain = mixed;
  plain.loss.mixes_labels = false;

  const EvaluationGraph evaluation = MakeEvaluationGraph(mixed, 4).value();

  CHECK(evaluation.graph.nodes == MakeEvaluationGraph(plain, 4).value().graph.nodes);
  CHECK(evaluation.graph.inputs.size() == 3);  // with the mask
  CHECK(MakeTrainingGraph(mixed).value().graph.inputs.size() == 4);
}

}  // namespace lockstep
