// From a job's model section to the metagraph, its bytes, its state and the graphs derived from it.
#include <catch2/catch.hpp>
#include <set>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/build/lenet_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/passes/training_graph.h"
#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "common/random/random.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

std::vector<std::string> Names(const StateLayout& layout) {
  std::vector<std::string> names;
  for (const StateTensor& tensor : layout.tensors) names.push_back(tensor.spec.name);
  return names;
}

std::string Bytes(const MetaGraph& metagraph) { return SerializeMetaGraph(metagraph).value(); }
std::string NameOf(const MetaGraph& metagraph) { return Fingerprint(metagraph).value(); }

TEST_CASE("metagraph: lenet has PyTorch's names and shapes", "[graph]") {
  const MetaGraph metagraph = Lenet();

  const std::vector<std::pair<std::string, Shape>> expected = {
      {"conv1.weight", {6, 1, 5, 5}}, {"conv1.bias", {6}}, {"conv2.weight", {16, 6, 5, 5}}, {"conv2.bias", {16}},
      {"fc1.weight", {120, 400}},     {"fc1.bias", {120}}, {"fc2.weight", {84, 120}},       {"fc2.bias", {84}},
      {"fc3.weight", {10, 84}},       {"fc3.bias", {10}}};
  REQUIRE(metagraph.forward.variables.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(metagraph.forward.variables[i].name == expected[i].first);
    CHECK(metagraph.forward.variables[i].shape == expected[i].second);
  }
}

TEST_CASE("metagraph: the training graph has a gradient of the right shape for every parameter", "[graph]") {
  const MetaGraph metagraph = Lenet();

  const absl::StatusOr<TrainingGraph> training = MakeTrainingGraph(metagraph);

  REQUIRE(training.ok());
  const Graph& graph = training->graph;
  CHECK(graph.outputs[0] == kLossSum);
  CHECK(graph.outputs[1] == kLossDenominator);
  REQUIRE(graph.outputs.size() == 2 + metagraph.forward.variables.size());
  for (size_t i = 0; i < metagraph.forward.variables.size(); ++i) {
    const Variable& variable = metagraph.forward.variables[i];
    CHECK(graph.outputs[2 + i] == "grad." + variable.name);
    CHECK(graph.values.at("grad." + variable.name) == ValueInfo{variable.dtype, variable.shape});
  }
  CHECK(graph.values.at("logits").shape == Shape{32, 10});
  // Nothing computes a gradient of the images.
  for (const Node& node : graph.nodes) CHECK(node.name != "lockstep.grad.conv1.dX");
  CHECK(training->graph.inputs.back().name != kRandomInput);
}

TEST_CASE("metagraph: deriving and fingerprinting give the same result every time", "[graph]") {
  const MetaGraph a = Lenet();
  const MetaGraph b = Lenet();
  CHECK(Bytes(a) == Bytes(b));
  CHECK(NameOf(a) == NameOf(b));
  CHECK(NameOf(a).size() == 64);
  CHECK(MakeTrainingGraph(a)->graph.nodes == MakeTrainingGraph(b)->graph.nodes);
}

TEST_CASE("metagraph: every part that decides a step changes the fingerprint", "[graph]") {
  const std::vector<void (*)(MetaGraph&)> changes = {
      [](MetaGraph& m) { m.pass_batch = 64; },
      [](MetaGraph& m) { m.update.schedule.lr = 0.1; },
      [](MetaGraph& m) { m.update.optimizer.nesterov = true; },
      [](MetaGraph& m) { m.update.clip_global_norm = 1.0; },
      [](MetaGraph& m) { m.update.reduction = ReductionMode::kFast; },
      [](MetaGraph& m) { m.update.on_nan = OnNan::kSkipStep; },
      [](MetaGraph& m) { m.update.ema = EmaRule{.decay = 0.9}; },
      [](MetaGraph& m) { m.update.ema = EmaRule{.decay = 0.9, .start_steps = 3}; },
      [](MetaGraph& m) { m.loss.ignore_index = 0; },
      [](MetaGraph& m) { m.loss.class_weights = std::vector<double>(10, 1.0); },
      [](MetaGraph& m) { m.signature[0].normalisation.mean = {0.5}; },
      [](MetaGraph& m) { m.forward.variables[0].init.value = 2.0; },
      [](MetaGraph& m) {
        std::get<ConvAttributes>(m.forward.nodes[0].attributes).strides = {2, 2};
      },
  };
  std::set<std::string> fingerprints = {NameOf(Lenet())};
  for (const auto change : changes) {
    MetaGraph metagraph = Lenet();
    change(metagraph);
    CHECK(fingerprints.insert(NameOf(metagraph)).second);
  }
}

TEST_CASE("metagraph: its bytes parse back to the same bytes", "[graph]") {
  MetaGraph metagraph = Lenet();
  metagraph.forward.constants.push_back({"two", std::make_shared<const Tensor>(Tensor::Of<float>({2}, {1.0f, 2.0f}))});
  const std::string bytes = Bytes(metagraph);

  const absl::StatusOr<MetaGraph> parsed = ParseMetaGraph(bytes);

  REQUIRE(parsed.ok());
  CHECK(Bytes(*parsed) == bytes);
  CHECK(parsed->forward.nodes == metagraph.forward.nodes);
  CHECK(parsed->forward.variables == metagraph.forward.variables);
  CHECK(parsed->signature == metagraph.signature);
  CHECK(parsed->loss == metagraph.loss);
  CHECK(parsed->update == metagraph.update);
  CHECK(BitEqual(*parsed->forward.constants[0].value, *metagraph.forward.constants[0].value));
}

TEST_CASE("metagraph: damaged bytes are refused", "[graph]") {
  const std::string bytes = Bytes(Lenet());
  CHECK_FALSE(ParseMetaGraph("").ok());
  CHECK_FALSE(ParseMetaGraph(bytes.substr(0, bytes.size() / 2)).ok());
  // Field 15 as a varint: a field that nobody knows.
  CHECK_FALSE(ParseMetaGraph(bytes + "\x78\x01").ok());
  std::string other_op = bytes;
  other_op.replace(other_op.find("Gemm"), 4, "Gemx");
  CHECK_THAT(std::string(ParseMetaGraph(other_op).status().message()), Contains("Gemx"));
  std::string other_link = bytes;
  other_link.replace(other_link.find("relu1.out"), 9, "relu9.out");
  CHECK_THAT(std::string(ParseMetaGraph(other_link).status().message()), Contains("relu1.out"));
}

TEST_CASE("metagraph: a node with too few or too many operands is refused on reading", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "mlp", .outputs = 10, .hidden_sizes = {4}, .dropout = 0.5};
  const MetaGraph sound = *BuildMetaGraph(request);
  for (size_t i = 0; i < sound.forward.nodes.size(); ++i) {
    MetaGraph few = sound;
    few.forward.nodes[i].inputs.clear();
    MetaGraph many = sound;
    many.forward.nodes[i].outputs.insert(many.forward.nodes[i].outputs.end(), {"x1", "x2", "x3"});
    for (const MetaGraph& broken : {few, many}) {
      CHECK_THAT(std::string(ParseMetaGraph(Bytes(broken)).status().message()),
                 Contains("'" + sound.forward.nodes[i].name + "'"));
    }
  }
}

TEST_CASE("metagraph: no damage brings the reader down", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "mlp", .outputs = 10, .hidden_sizes = {4}, .dropout = 0.5, .batch_norm = true};
  for (const std::string& bytes : {Bytes(Lenet()), Bytes(*BuildMetaGraph(request))}) {
    const RandomStream dice = RandomStream::For(11, StreamOfName("damage"));
    for (uint64_t i = 0; i < 1500; ++i) {
      std::string damaged = bytes;
      const uint32_t number = dice.At(3 * i);
      damaged[number % damaged.size()] = static_cast<char>(dice.At(3 * i + 1));
      if (number % 3 == 0) damaged.resize(dice.At(3 * i + 2) % damaged.size());
      const absl::StatusOr<MetaGraph> parsed = ParseMetaGraph(damaged);
      if (!parsed.ok()) continue;
      // What is read is another metagraph, with another fingerprint, which can be derived from or refused.
      CHECK((damaged == bytes) == (NameOf(*parsed) == NameOf(*ParseMetaGraph(bytes))));
      (void)MakeTrainingGraph(*parsed);
      (void)MakeEvaluationGraph(*parsed, 7);
    }
  }
}

TEST_CASE("metagraph: a parameter that the loss cannot reach or learn is named", "[graph]") {
  MetaGraph unused = Lenet();
  unused.forward.variables.push_back({"left.over", DType::kF32, {3}, VariableKind::kParameter, {}});
  CHECK_THAT(std::string(MakeTrainingGraph(unused).status().message()), Contains("'left.over'"));

  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "mlp", .outputs = 10, .hidden_sizes = {4}, .batch_norm = true};
  MetaGraph frozen = *BuildMetaGraph(request);
  for (Node& node : frozen.forward.nodes) {
    if (auto* norm = std::get_if<BatchNormAttributes>(&node.attributes)) norm->training_mode = false;
  }
  // A frozen normalisation is an affine map: its scale and bias learn, its statistics stay.
  const absl::StatusOr<TrainingGraph> affine = MakeTrainingGraph(frozen);
  REQUIRE(affine.ok());
  CHECK(affine->statistics.empty());

  MetaGraph cut = Lenet();
  cut.forward.nodes.push_back({"cut", OpType::kReluGrad, {cut.loss.output, cut.loss.output}, {"cut.out"}, {}});
  cut.forward.outputs.push_back("cut.out");
  cut.loss.output = "cut.out";
  CHECK_THAT(std::string(MakeTrainingGraph(cut).status().message()),
             Contains("'cut' (ReluGrad)") && Contains("cannot be differentiated"));

  MetaGraph shared = *BuildMetaGraph(request);
  for (Node& node : shared.forward.nodes) {
    if (node.name == "bn1") node.inputs[4] = node.inputs[3];
  }
  CHECK_THAT(std::string(MakeTrainingGraph(shared).status().message()), Contains("'bn1.running_mean'"));
}

TEST_CASE("state: the layout lists model, slots, exponents and the step", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "mlp", .outputs = 10, .hidden_sizes = {}};
  request.update.optimizer.kind = OptimizerKind::kAdam;
  const StateLayout adam = MakeStateLayout(*BuildMetaGraph(request));
  CHECK(Names(adam) == std::vector<std::string>{"fc1.weight", "fc1.bias", "exp_avg.fc1.weight", "exp_avg.fc1.bias",
                                                "exp_avg_sq.fc1.weight", "exp_avg_sq.fc1.bias",
                                                "lockstep.exponent.fc1.weight", "lockstep.exponent.fc1.bias",
                                                "lockstep.step"});
  CHECK(adam.tensors[0].group == StateGroup::kModel);
  CHECK(adam.tensors[2].group == StateGroup::kOptimizer);
  CHECK(adam.tensors[2].spec.shape == Shape{10, 784});
  CHECK(adam.Find("lockstep.step") == 8);
  CHECK(adam.Find("nothing") == -1);

  request.update.optimizer = {.kind = OptimizerKind::kSgd};
  request.update.reduction = ReductionMode::kFast;
  const StateLayout plain = MakeStateLayout(*BuildMetaGraph(request));
  CHECK(Names(plain) == std::vector<std::string>{"fc1.weight", "fc1.bias", "lockstep.step"});
}

TEST_CASE("state: adafactor keeps a row and a column of a matrix, and all of a vector", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.update.reduction = ReductionMode::kFast;
  request.update.optimizer = {.kind = OptimizerKind::kAdafactor};
  const StateLayout layout = MakeStateLayout(*BuildMetaGraph(request));
  const auto shape_of = [&](const std::string& name) {
    const int found = layout.Find(name);
    return found < 0 ? Shape{-1} : layout.tensors[static_cast<size_t>(found)].spec.shape;
  };
  const Shape kernel = shape_of("conv1.weight");
  const Shape matrix = shape_of("fc1.weight");
  REQUIRE(kernel.size() == 4);

  CHECK(shape_of("row_var.fc1.weight") == Shape{matrix[0], 1});
  CHECK(shape_of("col_var.fc1.weight") == Shape{1, matrix[1]});
  CHECK(shape_of("row_var.conv1.weight") == Shape{kernel[0], kernel[1], kernel[2], 1});
  CHECK(shape_of("col_var.conv1.weight") == Shape{kernel[0], kernel[1], 1, kernel[3]});
  CHECK(shape_of("variance.fc1.bias") == shape_of("fc1.bias"));
  for (const char* absent : {"variance.fc1.weight", "row_var.fc1.bias", "col_var.fc1.bias", "exp_avg.fc1.bias"}) {
    CHECK(layout.Find(absent) == -1);
  }

  request.update.optimizer = {.kind = OptimizerKind::kLamb};
  const StateLayout lamb = MakeStateLayout(*BuildMetaGraph(request));
  request.update.optimizer = {.kind = OptimizerKind::kAdam};
  CHECK(Names(lamb) == Names(MakeStateLayout(*BuildMetaGraph(request))));
}

TEST_CASE("state: the averaged model is whole, and what is not averaged lies there under a second name", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "mlp", .outputs = 10, .hidden_sizes = {4}, .batch_norm = true};
  request.update.ema = EmaRule{.decay = 0.9};
  MetaGraph metagraph = *BuildMetaGraph(request);
  metagraph.aliases = {{"tied", "fc1.weight"}, {"count", kStepCounterName}};

  const StateLayout layout = MakeStateLayout(metagraph);
  const std::vector<Tensor> initial = *MakeInitialState(metagraph, 7);

  int models = 0;
  int averages = 0;
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const StateTensor& tensor = layout.tensors[i];
    if (tensor.group != StateGroup::kModel) continue;
    CAPTURE(tensor.spec.name);
    ++models;
    const int at = layout.Find(EmaName(tensor.spec.name));
    REQUIRE(at >= 0);
    const StateTensor& twin = layout.tensors[static_cast<size_t>(at)];
    CHECK(twin.group == StateGroup::kEma);
    CHECK(twin.spec.shape == tensor.spec.shape);
    CHECK((twin.kind == StateKind::kAverage) == (tensor.kind == StateKind::kParameter));
    CHECK(BitEqual(initial[static_cast<size_t>(at)], initial[i]));
    averages += twin.kind == StateKind::kAverage ? 1 : 0;
  }
  CHECK(models == 6 + 2 + 2);
  CHECK(averages == 6);
  const auto of = [&](const char* name) { return layout.tensors[static_cast<size_t>(layout.Find(name))].variable; };
  CHECK(of("lockstep.ema.tied") == "lockstep.ema.fc1.weight");
  CHECK(of("lockstep.ema.count") == kStepCounterName);
}

TEST_CASE("state: initial values follow from seed and name and keep PyTorch's bounds", "[graph]") {
  const MetaGraph metagraph = Lenet();
  const StateLayout layout = MakeStateLayout(metagraph);

  const std::vector<Tensor> a = *MakeInitialState(metagraph, 7);
  const std::vector<Tensor> b = *MakeInitialState(metagraph, 7);
  const std::vector<Tensor> c = *MakeInitialState(metagraph, 8);

  REQUIRE(a.size() == layout.tensors.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(BitEqual(a[i], b[i]));
    CHECK(a[i].shape() == layout.tensors[i].spec.shape);
    CHECK(a[i].dtype() == layout.tensors[i].spec.dtype);
  }
  CHECK_FALSE(BitEqual(a[0], c[0]));
  const float bound = 1.0f / 20.0f;  // fc1: fan-in 400
  float largest = 0;
  for (const float w : a[layout.Find("fc1.weight")].elements<float>()) largest = std::max(largest, std::abs(w));
  CHECK(largest <= bound);
  CHECK(largest > 0.99f * bound);
  CHECK(a[layout.Find("lockstep.step")].elements<int64_t>()[0] == 0);
  CHECK(a[layout.Find("lockstep.exponent.fc1.bias")].elements<int32_t>()[0] == kExponentUnset);
  CHECK(a[layout.Find("momentum_buffer.fc1.bias")].elements<float>()[3] == 0.0f);
}

TEST_CASE("state: a variable from a file has to fit", "[graph]") {
  MetaGraph metagraph = Lenet();
  Variable& variable = metagraph.forward.variables[1];
  variable.init = {InitRule::Kind::kFile, 0, 0, std::string(64, 'a'), "conv1.bias"};
  const auto six = [](const std::string&, const std::string&) { return Tensor::Create(DType::kF32, {6}); };
  const auto seven = [](const std::string&, const std::string&) { return Tensor::Create(DType::kF32, {7}); };
  CHECK(MakeInitialState(metagraph, 1, six).ok());
  CHECK_THAT(std::string(MakeInitialState(metagraph, 1, seven).status().message()), Contains("conv1.bias"));
  CHECK_FALSE(MakeInitialState(metagraph, 1).ok());
}

TEST_CASE("metagraph: what does not fit is named", "[graph]") {
  const auto message = [](const MetaGraphRequest& request) {
    return std::string(BuildMetaGraph(request).status().message());
  };
  MetaGraphRequest request = LenetRequest();
  request.model.architecture = "lenett";
  CHECK_THAT(message(request), Contains("lenett") && Contains("lenet, mlp"));

  request = LenetRequest();
  request.inputs[0].shape = {kBatchDim, 28, 28};
  CHECK_THAT(message(request), Contains("'lenet'") && Contains("[-1, 28, 28]"));

  request = LenetRequest();
  request.inputs.pop_back();
  CHECK_THAT(message(request), Contains("label"));

  request = LenetRequest();
  request.inputs[1].dtype = DType::kF32;
  CHECK_THAT(message(request), Contains("labels") && Contains("I64"));

  request = LenetRequest();
  request.loss.kind = LossKind::kMse;
  CHECK_THAT(message(request), Contains("target"));

  request = LenetRequest();
  request.loss.output = "probabilities";
  CHECK_THAT(message(request), Contains("'probabilities'") && Contains("logits"));

  request = LenetRequest();
  request.loss.class_weights = {1.0, 2.0};
  CHECK_THAT(message(request), Contains("class weights"));

  request = LenetRequest();
  request.pass_batch = 0;
  CHECK_FALSE(message(request).empty());

  request = LenetRequest();
  request.update.optimizer.momentum = 1.0;
  CHECK_THAT(message(request), Contains("momentum"));
  request.update.optimizer = {.kind = OptimizerKind::kAdafactor, .epsilon = 1e-20};
  CHECK_THAT(message(request), Contains("the square of epsilon 1e-20"));
  request.update.optimizer = {.kind = OptimizerKind::kAdafactor, .beta2_decay = 0.5};
  CHECK_THAT(message(request), Contains("beta2_decay 0.5"));
  request.update.optimizer = {.kind = OptimizerKind::kAdafactor, .max_rms = 1e-60};
  CHECK_THAT(message(request), Contains("max_rms 1e-60"));
}

TEST_CASE("evaluation: the graph is masked and counts", "[graph]") {
  const absl::StatusOr<EvaluationGraph> evaluation = MakeEvaluationGraph(Lenet(), 100);
  REQUIRE(evaluation.ok());
  CHECK(evaluation->has_accuracy);
  CHECK(evaluation->graph.outputs ==
        std::vector<std::string>{kLossSum, kLossDenominator, kCorrectCount, kTop5Count, kLabelCount});
  CHECK(evaluation->graph.values.at(kMaskInput).shape == Shape{100});
  for (const Node& node : evaluation->graph.nodes) CHECK(node.op != OpType::kMaxPoolWithArgmax);
}

TEST_CASE("training: batch norm moves statistics and dropout reads the random input", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.model = {.architecture = "mlp", .outputs = 10, .hidden_sizes = {16, 8}, .dropout = 0.25, .batch_norm = true};
  const absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(request);
  REQUIRE(metagraph.ok());

  const TrainingGraph training = *MakeTrainingGraph(*metagraph);
  CHECK(training.graph.inputs.back().name == kRandomInput);
  REQUIRE(training.statistics.size() == 4);
  CHECK(training.statistics[0] == StatisticUpdate{"bn1.running_mean", "stat.bn1.running_mean", 0.9});
  CHECK(training.statistics[1] == StatisticUpdate{"bn1.running_var", "stat.bn1.running_var", 0.9});
  CHECK(training.graph.outputs.back() == "stat.bn2.running_var");

  const EvaluationGraph evaluation = *MakeEvaluationGraph(*metagraph, 10);
  for (const Node& node : evaluation.graph.nodes) {
    CHECK(node.op != OpType::kDropout);
    CHECK(node.op != OpType::kBatchNormTraining);
  }
  const StateLayout layout = MakeStateLayout(*metagraph);
  CHECK(layout.tensors[layout.Find("bn1.running_mean")].kind == StateKind::kStatistic);
  CHECK(layout.Find("momentum_buffer.bn1.running_mean") == -1);
}

}  // namespace
}  // namespace lockstep
