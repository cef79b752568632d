// Whole training graphs in float64: their gradients against central differences along random directions, their loss
// against the sums that it stands for, and evaluation against training.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/training_graph.h"
#include "tests/gradients/gradient_check.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

constexpr int64_t kBatch = 4;
constexpr int64_t kModelClasses = 3;

// A job's metagraph with every float made float64.
MetaGraph Doubled(const ModelSpec& model, LossKind loss, Shape image) {
  MetaGraphRequest request;
  request.model = model;
  image.insert(image.begin(), kBatchDim);
  const bool classes = loss == LossKind::kSoftmaxCrossEntropy;
  request.inputs = {{"x", "images", InputRole::kFeature, DType::kF32, image, {}},
                    {"t",
                     "labels",
                     InputRole::kLabel,
                     classes ? DType::kI64 : DType::kF32,
                     classes ? Shape{kBatchDim} : Shape{kBatchDim, model.outputs},
                     {}}};
  request.loss.kind = loss;
  request.pass_batch = kBatch;
  absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(request);
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  for (GraphInput& input : metagraph->forward.inputs) {
    if (input.dtype == DType::kF32) input.dtype = DType::kF64;
  }
  for (Variable& variable : metagraph->forward.variables) variable.dtype = DType::kF64;
  return *std::move(metagraph);
}

void Copy(const Tensor& from, Tensor& to) {
  REQUIRE(from.shape() == to.shape());
  std::memcpy(to.data(), from.data(), static_cast<size_t>(from.byte_size()));
}

TrainingGraph Derive(const MetaGraph& metagraph) {
  absl::StatusOr<TrainingGraph> training = MakeTrainingGraph(metagraph);
  INFO(training.status().ToString());
  REQUIRE(training.ok());
  return *std::move(training);
}

// Random parameters, inputs and labels, the same for every runner that gets the same seed.
void Fill(const Graph& graph, GraphRunner* runner, uint64_t seed) {
  CaseNumbers dice(seed);
  for (const Variable& variable : graph.variables) {
    Tensor& value = runner->value(variable.name);
    Copy(dice.Uniform(variable.shape), value);
    for (double& element : value.elements<double>()) {
      element = variable.kind == VariableKind::kStatistic ? 1.0 + 0.5 * element : 0.3 * element;
    }
  }
  for (const GraphInput& input : graph.inputs) {
    Tensor& value = runner->value(input.name);
    if (input.name == kRandomInput || input.name == kMaskInput) continue;
    if (input.dtype == DType::kF64) Copy(dice.Uniform(input.shape), value);
    if (input.dtype == DType::kI64) {
      for (int64_t& label : value.elements<int64_t>()) label = dice.Int(0, kModelClasses - 1);
    }
  }
}

double Scalar(GraphRunner* runner, const char* name) { return runner->value(name).elements<double>()[0]; }

// Moves every parameter by `distance` along its direction.
void Move(GraphRunner* runner, const std::vector<std::pair<std::string, Tensor>>& direction, double distance) {
  for (const auto& [name, along] : direction) {
    absl::Span<double> value = runner->value(name).elements<double>();
    for (size_t i = 0; i < value.size(); ++i) value[i] += distance * along.elements<double>()[i];
  }
}

// The slope of the loss along a random direction, by the gradients and by differences.
void CheckSlope(const MetaGraph& metagraph, uint64_t seed) {
  const Graph graph = Derive(metagraph).graph;
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(graph);
  Fill(graph, runner.get(), seed);
  CaseNumbers dice(seed + 1000);
  std::vector<std::pair<std::string, Tensor>> direction;
  for (const Variable& variable : graph.variables) {
    if (variable.kind == VariableKind::kParameter) direction.emplace_back(variable.name, dice.Uniform(variable.shape));
  }

  REQUIRE(runner->Run().ok());
  double slope = 0;
  for (const auto& [name, along] : direction) {
    const absl::Span<const double> gradient = runner->value(GradientName(name)).elements<double>();
    for (size_t i = 0; i < gradient.size(); ++i) slope += gradient[i] * along.elements<double>()[i];
  }
  constexpr double kDistance = 1e-6;
  Move(runner.get(), direction, kDistance);
  REQUIRE(runner->Run().ok());
  const double above = Scalar(runner.get(), kLossSum);
  Move(runner.get(), direction, -2 * kDistance);
  REQUIRE(runner->Run().ok());
  const double below = Scalar(runner.get(), kLossSum);

  const double difference = (above - below) / (2 * kDistance);
  CHECK(std::abs(slope) > 1e-6);
  CHECK(std::abs(slope - difference) < 1e-5 * std::max(1.0, std::abs(difference)));
}

ModelSpec Mlp() {
  return {.architecture = "mlp", .outputs = kModelClasses, .hidden_sizes = {5, 4}, .activation = "tanh"};
}

TEST_CASE("gradients: a whole model's slope agrees with differences", "[gradients]") {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    CheckSlope(
        Doubled({.architecture = "lenet", .outputs = kModelClasses}, LossKind::kSoftmaxCrossEntropy, {1, 12, 14}),
        seed);
    ModelSpec mlp = Mlp();
    for (const LossKind loss :
         {LossKind::kSoftmaxCrossEntropy, LossKind::kMse, LossKind::kL1, LossKind::kHuber, LossKind::kBceWithLogits}) {
      CheckSlope(Doubled(mlp, loss, {6}), seed);
    }
    mlp.batch_norm = true;
    mlp.dropout = 0.3;
    mlp.activation = "sigmoid";
    CheckSlope(Doubled(mlp, LossKind::kSoftmaxCrossEntropy, {2, 3}), seed);
  }
}

TEST_CASE("gradients: a value that several nodes read gets the sum of what they send back", "[gradients]") {
  // One weight in two layers and twice in one product.
  MetaGraph metagraph = Doubled(Mlp(), LossKind::kSoftmaxCrossEntropy, {5});
  Graph& graph = metagraph.forward;
  const auto shared = std::find_if(graph.variables.begin(), graph.variables.end(),
                                   [](const Variable& v) { return v.name == "fc1.weight"; });
  REQUIRE(shared->shape == Shape{5, 5});
  graph.nodes.insert(graph.nodes.begin() + 1,
                     {{"again", OpType::kGemm, {"fc1.out", "fc1.weight", "fc1.bias"}, {"again.out"}, GemmAttributes{}},
                      {"square", OpType::kMul, {"again.out", "again.out"}, {"square.out"}, NoAttributes{}}});
  graph.nodes[3].inputs[0] = "square.out";
  for (uint64_t seed = 1; seed <= 5; ++seed) CheckSlope(metagraph, seed);
}

TEST_CASE("gradients: two parameters with one gradient both get it", "[gradients]") {
  MetaGraph metagraph = Doubled(Mlp(), LossKind::kSoftmaxCrossEntropy, {6});
  Graph& graph = metagraph.forward;
  graph.variables.push_back({"extra.bias", DType::kF64, {kBatch, 5}, VariableKind::kParameter, {}});
  graph.variables.push_back({"other.bias", DType::kF64, {kBatch, 5}, VariableKind::kParameter, {}});
  graph.nodes.insert(graph.nodes.begin() + 1,
                     {{"add1", OpType::kAdd, {"fc1.out", "extra.bias"}, {"add1.out"}, NoAttributes{}},
                      {"add2", OpType::kAdd, {"add1.out", "other.bias"}, {"add2.out"}, NoAttributes{}}});
  graph.nodes[3].inputs[0] = "add2.out";

  CheckSlope(metagraph, 3);

  const TrainingGraph training = Derive(metagraph);
  CHECK(std::count(training.graph.outputs.begin(), training.graph.outputs.end(), "grad.extra.bias") == 1);
  CHECK(std::count(training.graph.outputs.begin(), training.graph.outputs.end(), "grad.other.bias") == 1);
}

TEST_CASE("gradients: a loss inside the graph trains as the named one", "[gradients]") {
  MetaGraph named = Doubled(Mlp(), LossKind::kSoftmaxCrossEntropy, {6});
  MetaGraph inside = named;
  inside.forward.nodes.push_back(
      {"loss", OpType::kSoftmaxCrossEntropyLoss, {"logits", "t"}, {"loss.out"}, CrossEntropyAttributes{}});
  inside.forward.outputs.push_back("loss.out");
  inside.loss.kind = LossKind::kGraphOutput;
  inside.loss.output = "loss.out";
  inside.loss.label = "";

  const auto run = [](const MetaGraph& metagraph) {
    const TrainingGraph training = Derive(metagraph);
    std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(training.graph);
    Fill(training.graph, runner.get(), 5);
    REQUIRE(runner->Run().ok());
    return runner;
  };
  const auto a = run(named);
  const auto b = run(inside);
  CHECK(Scalar(a.get(), kLossSum) == Scalar(b.get(), kLossSum));
  CHECK(Scalar(a.get(), kLossDenominator) == kBatch);
  CHECK(Scalar(b.get(), kLossDenominator) == kBatch);
  CHECK(BitEqual(a->value("grad.fc1.weight"), b->value("grad.fc1.weight")));
  CHECK(MakeEvaluationGraph(inside, 4)->has_accuracy);
}

TEST_CASE("gradients: a negative log likelihood inside the graph counts its labels", "[gradients]") {
  MetaGraph metagraph = Doubled(Mlp(), LossKind::kSoftmaxCrossEntropy, {6});
  metagraph.forward.nodes.push_back(
      {"log", OpType::kLogSoftmax, {"logits"}, {"log.out"}, SoftmaxAttributes{.axis = 1}});
  metagraph.forward.nodes.push_back(
      {"loss", OpType::kNegativeLogLikelihoodLoss, {"log.out", "t"}, {"loss.out"}, CrossEntropyAttributes{}});
  metagraph.forward.outputs.push_back("loss.out");
  metagraph.loss.kind = LossKind::kGraphOutput;
  metagraph.loss.output = "loss.out";
  metagraph.loss.label = "";

  for (uint64_t seed = 1; seed <= 3; ++seed) CheckSlope(metagraph, seed);

  const TrainingGraph training = Derive(metagraph);
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(training.graph);
  Fill(training.graph, runner.get(), 5);
  REQUIRE(runner->Run().ok());
  CHECK(Scalar(runner.get(), kLossDenominator) == kBatch);
  CHECK(MakeEvaluationGraph(metagraph, 4)->has_accuracy);
}

TEST_CASE("gradients: any scalar of the graph can be the loss", "[gradients]") {
  MetaGraph metagraph = Doubled(Mlp(), LossKind::kSoftmaxCrossEntropy, {6});
  metagraph.forward.nodes.push_back({"square", OpType::kMul, {"logits", "logits"}, {"square.out"}, NoAttributes{}});
  metagraph.forward.nodes.push_back({"mean", OpType::kReduceMean, {"square.out"}, {"mean.out"}, ReduceAttributes{}});
  metagraph.forward.outputs.push_back("mean.out");
  metagraph.loss = {};
  metagraph.loss.kind = LossKind::kGraphOutput;
  metagraph.loss.output = "mean.out";

  CheckSlope(metagraph, 9);

  const EvaluationGraph evaluation = MakeEvaluationGraph(metagraph, 4).value();
  CHECK_FALSE(evaluation.samples_apart);
  CHECK_FALSE(evaluation.has_accuracy);
  metagraph.loss.output = "logits";
  CHECK_FALSE(MakeTrainingGraph(metagraph).ok());
}

TEST_CASE("evaluation: padding counts for nothing and the rest as in training", "[gradients]") {
  ModelSpec mlp = Mlp();
  mlp.dropout = 0.5;  // evaluation has none: compare with the model without
  for (const LossKind loss : {LossKind::kSoftmaxCrossEntropy, LossKind::kMse}) {
    MetaGraph metagraph = Doubled(Mlp(), loss, {6});
    metagraph.pass_batch = 3;
    const TrainingGraph training = Derive(metagraph);
    const std::unique_ptr<GraphRunner> trained = *GraphRunner::Make(training.graph);
    Fill(training.graph, trained.get(), 4);
    REQUIRE(trained->Run().ok());

    const EvaluationGraph evaluation = *MakeEvaluationGraph(Doubled(mlp, loss, {6}), 5);
    const std::unique_ptr<GraphRunner> evaluated = *GraphRunner::Make(evaluation.graph);
    for (const Variable& variable : metagraph.forward.variables) {
      Copy(trained->value(variable.name), evaluated->value(variable.name));
    }
    // Three samples, and two rows of padding that hold NaN.
    Tensor& x = evaluated->value("x");
    std::fill(x.elements<double>().begin(), x.elements<double>().end(), std::nan(""));
    std::memcpy(x.data(), trained->value("x").data(), static_cast<size_t>(trained->value("x").byte_size()));
    std::memcpy(evaluated->value("t").data(), trained->value("t").data(),
                static_cast<size_t>(trained->value("t").byte_size()));
    for (int i = 0; i < 3; ++i) evaluated->value(kMaskInput).elements<double>()[i] = 1.0;
    REQUIRE(evaluated->Run().ok());

    CHECK(Scalar(evaluated.get(), kLossSum) == Approx(Scalar(trained.get(), kLossSum)).epsilon(1e-12));
    CHECK(Scalar(evaluated.get(), kLossDenominator) == Scalar(trained.get(), kLossDenominator));
    if (loss == LossKind::kSoftmaxCrossEntropy) {
      CHECK(evaluated->value(kLabelCount).elements<int64_t>()[0] == 3);
      CHECK(evaluated->value(kCorrectCount).elements<int64_t>()[0] <= 3);
    }
  }
}

TEST_CASE("training: class weights and ignored labels reach the denominator", "[gradients]") {
  MetaGraph metagraph = Doubled(Mlp(), LossKind::kSoftmaxCrossEntropy, {6});
  metagraph.loss.class_weights = {1.0, 2.0, 4.0};
  metagraph.loss.ignore_index = 1;
  const TrainingGraph training = Derive(metagraph);
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(training.graph);
  Fill(training.graph, runner.get(), 4);
  const std::vector<int64_t> labels = {0, 1, 2, 2};
  std::copy(labels.begin(), labels.end(), runner->value("t").elements<int64_t>().begin());

  REQUIRE(runner->Run().ok());

  CHECK(Scalar(runner.get(), kLossDenominator) == 1.0 + 4.0 + 4.0);
  CheckSlope(metagraph, 4);
}

TEST_CASE("training: batch norm's statistics are those of the pass", "[gradients]") {
  ModelSpec mlp = Mlp();
  mlp.hidden_sizes = {5};
  mlp.batch_norm = true;
  const TrainingGraph training = Derive(Doubled(mlp, LossKind::kSoftmaxCrossEntropy, {6}));
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(training.graph);
  Fill(training.graph, runner.get(), 4);

  REQUIRE(runner->Run().ok());

  const absl::Span<const double> x = runner->value("fc1.out").elements<double>();
  for (int64_t c = 0; c < 5; ++c) {
    double mean = 0;
    double squares = 0;
    for (int64_t n = 0; n < kBatch; ++n) mean += x[n * 5 + c] / kBatch;
    for (int64_t n = 0; n < kBatch; ++n) squares += (x[n * 5 + c] - mean) * (x[n * 5 + c] - mean);
    CHECK(runner->value("stat.bn1.running_mean").elements<double>()[c] == Approx(mean));
    CHECK(runner->value("stat.bn1.running_var").elements<double>()[c] == Approx(squares / (kBatch - 1)));
  }
}

TEST_CASE("training: what dropout drops follows from the random input", "[gradients]") {
  ModelSpec mlp = Mlp();
  mlp.dropout = 0.5;
  const TrainingGraph training = Derive(Doubled(mlp, LossKind::kSoftmaxCrossEntropy, {6}));
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(training.graph);
  Fill(training.graph, runner.get(), 4);
  const auto loss_at = [&](int64_t seed, int64_t step, int64_t shard, int64_t pass) {
    const std::vector<int64_t> key = {seed, step, shard, pass};
    std::copy(key.begin(), key.end(), runner->value(kRandomInput).elements<int64_t>().begin());
    REQUIRE(runner->Run().ok());
    return Scalar(runner.get(), kLossSum);
  };

  const double first = loss_at(1, 2, 3, 0);

  CHECK(loss_at(1, 2, 3, 0) == first);
  CHECK(loss_at(2, 2, 3, 0) != first);
  CHECK(loss_at(1, 3, 3, 0) != first);
  CHECK(loss_at(1, 2, 4, 0) != first);
  CHECK(loss_at(1, 2, 3, 1) != first);
}

}  // namespace
}  // namespace lockstep
