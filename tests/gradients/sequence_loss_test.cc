// The loss of scores per position, [batch, length, classes], against sums written out here: what is ignored, what the
// mask of an evaluation takes out, what smoothing adds, and when the classes' dimension has to be named.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/passes/training_graph.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr int64_t kSequences = 2;
constexpr int64_t kLength = 3;
constexpr int64_t kIgnored = -100;
const std::vector<int64_t> kTokens = {0, 3, 1, 2, 2, 0};
const std::vector<int64_t> kLabels = {3, 1, 0, 2, kIgnored, 1};

std::vector<float> Table(int64_t classes) {
  std::vector<float> table;
  for (int64_t i = 0; i < 4 * classes; ++i) table.push_back(std::sin(2.3f * static_cast<float>(i)));
  return table;
}

// Every token's row of a table of 4 are its scores.
MetaGraphRequest Request(int64_t classes) {
  MetaGraphRequest request;
  Graph graph;
  graph.inputs = {{"tokens", DType::kI64, {kBatchDim, kLength}}};
  graph.variables = {{"table", DType::kF32, {4, classes}, VariableKind::kParameter, {}}};
  graph.nodes = {{"scores", OpType::kGather, {"table", "tokens"}, {"scores"}, GatherAttributes{}}};
  graph.outputs = {"scores"};
  request.imported = graph;
  request.inputs = {{"tokens", "inputs", InputRole::kFeature, DType::kI64, {kBatchDim, kLength}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, kLength}, {}}};
  request.loss.ignore_index = kIgnored;
  request.update.schedule.lr = 0.1;
  request.pass_batch = kSequences;
  return request;
}

// Sum over the samples [0, samples) of (1 - smoothing) * -log_prob[label] + smoothing * mean of -log_prob.
double Expected(int64_t samples, double smoothing, int64_t* counted, int64_t* correct) {
  const std::vector<float> table = Table(4);
  double loss = 0;
  *counted = *correct = 0;
  for (int64_t i = 0; i < samples * kLength; ++i) {
    if (kLabels[i] == kIgnored) continue;
    const float* scores = &table[kTokens[i] * 4];
    double total = 0, mean = 0;
    int64_t best = 0;
    for (int64_t c = 0; c < 4; ++c) {
      total += std::exp(static_cast<double>(scores[c]));
      if (scores[c] > scores[best]) best = c;
    }
    for (int64_t c = 0; c < 4; ++c) mean += (std::log(total) - scores[c]) / 4;
    loss += (1 - smoothing) * (std::log(total) - scores[kLabels[i]]) + smoothing * mean;
    ++*counted;
    *correct += best == kLabels[i];
  }
  return loss;
}

std::unique_ptr<GraphRunner> RunLoss(const Graph& graph, std::vector<float> mask, std::vector<float> table = Table(4)) {
  auto runner = GraphRunner::Make(graph).value();
  const auto fill = [&](const char* name, const auto& values) {
    Tensor& tensor = runner->value(name);
    std::memcpy(tensor.data(), values.data(), static_cast<size_t>(tensor.byte_size()));
  };
  fill("tokens", kTokens);
  fill("labels", kLabels);
  fill("table", table);
  if (!mask.empty()) fill(kMaskInput, mask);
  REQUIRE(runner->Run().ok());
  return runner;
}

TEST_CASE("sequence loss: ignored labels count for nothing, smoothing is spread over the classes", "[loss]") {
  const double smoothing = GENERATE(0.0, 0.3);
  MetaGraphRequest request = Request(5);
  request.class_axis = ClassAxis::kAuto;
  CHECK(BuildMetaGraph(request).value().loss.classes_last);
  request = Request(4);
  request.loss.label_smoothing = smoothing;
  const MetaGraph metagraph = BuildMetaGraph(request).value();
  int64_t counted = 0, correct = 0;
  const double expected = Expected(kSequences, smoothing, &counted, &correct);

  const auto runner = RunLoss(MakeTrainingGraph(metagraph).value().graph, {});

  CHECK(runner->value(kLossSum).elements<float>()[0] == Approx(expected).epsilon(1e-6));
  CHECK(runner->value(kLossDenominator).elements<float>()[0] == static_cast<float>(counted));
}

// An evaluation of which the first `samples` samples count.
void CheckMasked(const Graph& graph, int64_t samples) {
  int64_t counted = 0, correct = 0;
  const double expected = Expected(samples, 0, &counted, &correct);

  const auto runner = RunLoss(graph, {1.0f, samples == 2 ? 1.0f : 0.0f});

  CHECK(runner->value(kLossSum).elements<float>()[0] == Approx(expected).epsilon(1e-6));
  CHECK(runner->value(kLossDenominator).elements<float>()[0] == static_cast<float>(counted));
  CHECK(runner->value(kLabelCount).elements<int64_t>()[0] == counted);
  CHECK(runner->value(kCorrectCount).elements<int64_t>()[0] == correct);
}

TEST_CASE("sequence loss: an evaluation counts the positions of unmasked samples, without smoothing", "[loss]") {
  const int64_t samples = GENERATE(1, 2);
  MetaGraphRequest request = Request(4);
  request.loss.label_smoothing = 0.3;
  const EvaluationGraph evaluation = MakeEvaluationGraph(BuildMetaGraph(request).value(), kSequences).value();
  CheckMasked(evaluation.graph, samples);
}

TEST_CASE("sequence loss: a score that is NaN is never correct, and its label is counted", "[loss]") {
  const EvaluationGraph evaluation = MakeEvaluationGraph(BuildMetaGraph(Request(4)).value(), kSequences).value();
  const auto nan = std::numeric_limits<float>::quiet_NaN();

  const auto runner = RunLoss(evaluation.graph, {1.0f, 1.0f}, std::vector<float>(16, nan));

  CHECK(runner->value(kLabelCount).elements<int64_t>()[0] == 5);
  CHECK(runner->value(kCorrectCount).elements<int64_t>()[0] == 0);
  CHECK(runner->value(kTop5Count).elements<int64_t>()[0] == 0);
}

TEST_CASE("sequence loss: where both dimensions could be the classes, the job has to say which", "[loss]") {
  MetaGraphRequest request = Request(kLength);

  const auto unclear = BuildMetaGraph(request);
  request.class_axis = ClassAxis::kLast;
  const auto last = BuildMetaGraph(request);
  request.class_axis = ClassAxis::kSecond;
  const auto second = BuildMetaGraph(request);

  CHECK_THAT(std::string(unclear.status().message()), Contains("model.class_axis"));
  CHECK(last.value().loss.classes_last);
  CHECK_FALSE(second.value().loss.classes_last);
}

// The loss over all positions as rows, inside the graph. `by_position`: rows of one position stand together, so that
// those of a sample do not.
MetaGraph LossInside(bool by_position) {
  MetaGraph metagraph = BuildMetaGraph(Request(4)).value();
  Graph& forward = metagraph.forward;
  std::string scores = "scores", labels = "labels";
  if (by_position) {
    forward.nodes.push_back({"s", OpType::kTranspose, {"scores"}, {"scores.t"}, TransposeAttributes{{1, 0, 2}}});
    forward.nodes.push_back({"l", OpType::kTranspose, {"labels"}, {"labels.t"}, TransposeAttributes{{1, 0}}});
    scores = "scores.t";
    labels = "labels.t";
  }
  forward.nodes.push_back({"rows", OpType::kReshape, {scores}, {"rows"}, ReshapeAttributes{{-1, 4}, true}});
  forward.nodes.push_back({"flat", OpType::kReshape, {labels}, {"flat"}, ReshapeAttributes{{-1}, true}});
  forward.nodes.push_back({"loss", OpType::kSoftmaxCrossEntropyLoss, {"rows", "flat"}, {"loss"}, {}});
  forward.nodes.back().attributes = CrossEntropyAttributes{.ignore_index = kIgnored};
  forward.outputs.push_back("loss");
  metagraph.loss = {};
  metagraph.loss.kind = LossKind::kGraphOutput;
  metagraph.loss.output = "loss";
  return metagraph;
}

TEST_CASE("sequence loss: one over all positions inside the graph is evaluated by sample, where rows follow samples",
          "[loss]") {
  const int64_t samples = GENERATE(1, 2);
  const MetaGraph metagraph = LossInside(/*by_position=*/false);
  CHECK(MakeTrainingGraph(metagraph).ok());
  const EvaluationGraph evaluation = MakeEvaluationGraph(metagraph, kSequences).value();
  CHECK(evaluation.samples_apart);
  REQUIRE(evaluation.has_accuracy);
  CheckMasked(evaluation.graph, samples);
}

TEST_CASE("sequence loss: one whose rows do not follow the samples is that of the whole batch", "[loss]") {
  const MetaGraph metagraph = LossInside(/*by_position=*/true);
  const EvaluationGraph evaluation = MakeEvaluationGraph(metagraph, kSequences).value();
  CHECK_FALSE(evaluation.samples_apart);
  CHECK_FALSE(evaluation.has_accuracy);
  int64_t counted = 0, correct = 0;
  const double expected = Expected(kSequences, 0, &counted, &correct);

  const auto runner = RunLoss(evaluation.graph, {});

  CHECK(runner->value(kLossSum).elements<float>()[0] == Approx(expected).epsilon(1e-6));
  CHECK(runner->value(kLossDenominator).elements<float>()[0] == static_cast<float>(counted));
}

}  // namespace
}  // namespace lockstep
