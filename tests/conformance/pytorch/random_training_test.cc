// Models that draw random numbers, from files that random_models.py makes: on the average over many draws they give
// what PyTorch gives with its own numbers, and in evaluation they leave out what PyTorch's eval() leaves out.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "common/graph/onnx/import.h"
#include "common/graph/onnx/open_batch.h"
#include "common/graph/passes/serving_graph.h"
#include "common/graph/training_account.h"
#include "tests/conformance/pytorch/imported_training.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep::worker {
namespace {

const std::string kPath = "tests/conformance/pytorch/random/noisy";
constexpr int kDraws = 3000;

struct Moments {
  double mean = 0;
  double deviation = 0;
};

// Of a number that comes again and again (Welford).
class Sample {
 public:
  void Add(double value) {
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / count_;
    squares_ += delta * (value - mean_);
  }
  Moments moments() const { return {mean_, std::sqrt(squares_ / (count_ - 1))}; }

 private:
  int count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

struct GoldenMoments {
  int draws = 0;
  std::map<std::string, Moments> moments;
};

GoldenMoments ReadMoments() {
  GoldenMoments golden;
  std::ifstream file(kPath + ".moments.txt");
  std::string word;
  file >> word >> golden.draws;
  for (Moments moments; file >> word >> moments.mean >> moments.deviation;) golden.moments[word] = moments;
  REQUIRE(golden.moments.size() > 2);
  return golden;
}

// The graph of one pass on the example's data, with the weights of the file.
std::unique_ptr<GraphRunner> RunnerOf(const Graph& graph, const ImportedModel& model, const Example& example) {
  std::unique_ptr<GraphRunner> runner = GraphRunner::Make(graph).value();
  const auto fill = [&](const std::string& name, const Tensor& tensor) {
    std::memcpy(runner->value(name).data(), tensor.data(), static_cast<size_t>(tensor.byte_size()));
  };
  for (const Variable& variable : graph.variables) fill(variable.name, model.initial.at(variable.name));
  for (const GraphInput& input : graph.inputs) {
    if (input.name == kMaskInput) {
      for (float& whole : runner->value(kMaskInput).elements<float>()) whole = 1;
    } else if (input.name != kRandomInput) {
      fill(input.name, input.name == "labels" ? example.labels : example.inputs[0]);
    }
  }
  return runner;
}

void Draw(GraphRunner* runner, int64_t step) {
  const int64_t key[] = {11, step, 0, 0};
  std::memcpy(runner->value(kRandomInput).data(), key, sizeof key);
  REQUIRE(runner->Run().ok());
}

double LossOf(GraphRunner* runner) {
  return static_cast<double>(runner->value(kLossSum).elements<float>()[0]) /
         static_cast<double>(runner->value(kLossDenominator).elements<float>()[0]);
}

struct Noisy {
  ImportedModel model;
  Example example;
  MetaGraph metagraph;
};

Noisy ReadNoisy() {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.batch = 8;
  Noisy noisy;
  auto model = ImportOnnx(ReadOnnxFile(kPath + ".onnx").value(), options);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  noisy.model = *std::move(model);
  noisy.example = ReadExample(kPath, 1);
  noisy.metagraph = MakeMetaGraph(noisy.model, noisy.example, {.rate = 0.1}, Precision::kFloat32);
  return noisy;
}

TEST_CASE("random: draws have PyTorch's distribution, in the loss and in every gradient", "[pytorch]") {
  const GoldenMoments golden = ReadMoments();
  const Noisy noisy = ReadNoisy();
  const TrainingGraph training = MakeTrainingGraph(noisy.metagraph).value();
  const EvaluationGraph evaluation = MakeEvaluationGraph(noisy.metagraph, 8).value();
  const auto trains = RunnerOf(training.graph, noisy.model, noisy.example);
  const auto evaluates = RunnerOf(evaluation.graph, noisy.model, noisy.example);
  std::map<std::string, Sample> samples;
  for (int64_t step = 1; step <= kDraws; ++step) {
    Draw(trains.get(), step);
    Draw(evaluates.get(), step);
    samples["loss"].Add(LossOf(trains.get()));
    samples["evaluation"].Add(LossOf(evaluates.get()));
    for (const auto& [name, moments] : golden.moments) {
      if (name == "loss" || name == "evaluation") continue;
      double sum = 0;
      int64_t i = 0;
      for (const float element : trains->value(GradientName(name)).elements<float>()) {
        sum += static_cast<double>(element) * std::cos(static_cast<double>(i++));
      }
      samples[name].Add(sum / 8);
    }
  }

  for (const auto& [name, wanted] : golden.moments) {
    const Moments got = samples.at(name).moments();
    const double error = wanted.deviation * std::sqrt(1.0 / golden.draws + 1.0 / kDraws);
    INFO(name << ": mean " << got.mean << " and deviation " << got.deviation << ", PyTorch's " << wanted.mean << " and "
              << wanted.deviation);
    CHECK(std::abs(got.mean - wanted.mean) < 4.5 * error);
    CHECK(got.deviation == Approx(wanted.deviation).epsilon(0.12));
  }
}

TEST_CASE("random: evaluation and export leave out what eval() leaves out, and draw the rest", "[pytorch]") {
  const Noisy noisy = ReadNoisy();
  std::map<std::string, std::string> account;
  for (const AccountLine& line : DescribeTraining(noisy.metagraph, &noisy.model.notes)) {
    account[line.what] += line.text + "\n";
  }

  CHECK(account.at("random") ==
        "5 draws of random numbers in training alone: n1, n1_2, n1_3, node_rand, n1_4\n"
        "5 draws of random numbers in evaluations and in exported models too, where layers are left out whose class is "
        "called ...Dropout, ...DropPath or StochasticDepth: node_randn_like, node_bernoulli_4.0, node_multinomial.3, "
        "node_rand_like, node_rand_1\n");
  std::map<OpType, int> served;
  for (const Node& node : MakeServingGraph(noisy.metagraph).nodes) ++served[node.op];
  CHECK(served[OpType::kUniformLike] == 4);
  CHECK(served[OpType::kNormalLike] == 1);
  CHECK(served[OpType::kFloor] == 0);
}

TEST_CASE("random: a model that draws for each sample takes batches of another size", "[pytorch]") {
  Noisy noisy = ReadNoisy();
  const BatchOpening opening = OpenBatch(noisy.metagraph.forward, 8).value();
  REQUIRE(opening.open);
  noisy.metagraph.forward = opening.graph;
  noisy.metagraph.forward.values.clear();
  for (GraphInput& input : noisy.metagraph.forward.inputs) input.shape[0] = kBatchDim;

  const EvaluationGraph evaluation = MakeEvaluationGraph(noisy.metagraph, 3).value();

  int draws = 0;
  for (const Node& node : evaluation.graph.nodes) {
    if (node.op != OpType::kUniformLike && node.op != OpType::kNormalLike) continue;
    CHECK(evaluation.graph.values.at(node.outputs[0]).shape[0] == 3);
    ++draws;
  }
  CHECK(draws == 5);
}

}  // namespace
}  // namespace lockstep::worker
