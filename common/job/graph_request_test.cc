#include "common/job/graph_request.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep {
namespace {

constexpr char kJobOfArrays[] =
    "name: small\n"
    "model: {builtin: {name: lenet}}\n"
    "data:\n"
    "  train: {inputs: x, labels: y}\n"
    "  normalize: {divide_by: 255, mean: 0.286, std: 0.353}\n"
    "train: {duration: 10ep, global_batch_size: 256, logical_shards: 8, optimizer: {lr: 0.1, momentum: 0.9}}\n";

const TensorSpec kImages{"inputs", DType::kF32, {28, 28}};
const TensorSpec kLabels{"labels", DType::kI64, {}};

JobSpec Job(const std::vector<std::string>& overrides = {}) {
  const auto spec = ParseJob(kJobOfArrays, "/jobs/job.yaml", overrides);
  INFO(spec.status());
  REQUIRE(spec.ok());
  return *spec;
}

MetaGraphRequest Request(const std::vector<std::string>& overrides = {}) {
  const auto request = MakeMetaGraphRequest(Job(overrides), nullptr, {kImages}, kLabels, 60000);
  INFO(request.status());
  REQUIRE(request.ok());
  return *request;
}

TEST_CASE("graph request: the model, its inputs and the loss of a job", "[job]") {
  const MetaGraphRequest request = Request();

  CHECK(request.model.architecture == "lenet");
  CHECK(request.inputs[0].shape == Shape{kBatchDim, 1, 28, 28});
  CHECK(request.inputs[0].normalisation == Normalisation{1.0 / 255, {0.286}, {0.353}});
  CHECK(request.inputs[1].role == InputRole::kLabel);
  CHECK(request.inputs[1].shape == Shape{kBatchDim});
  CHECK(request.pass_batch == 32);
  CHECK(request.loss.kind == LossKind::kSoftmaxCrossEntropy);
  CHECK(BuildMetaGraph(request).ok());

  const MetaGraphRequest mlp =
      Request({"model.builtin={name: mlp, hidden: [64, 32], activation: tanh, dropout: 0.25, "
               "batch_norm: true, input: [784]}",
               "model.loss=huber", "model.huber_delta=2"});
  CHECK(mlp.model.hidden_sizes == std::vector<int64_t>{64, 32});
  CHECK(mlp.model.activation == "tanh");
  CHECK(mlp.model.batch_norm);
  CHECK(mlp.model.dropout == 0.25);
  CHECK(mlp.inputs[0].shape == Shape{kBatchDim, 784});
  CHECK(mlp.loss.huber_delta == 2);
  CHECK(Request({"model.loss=output:total"}).loss.output == "total");

  const auto wrong = MakeMetaGraphRequest(Job({"model.builtin.input=[1, 27, 28]"}), nullptr, {kImages}, kLabels, 60000);
  CHECK_THAT(std::string(wrong.status().message()), Catch::Contains("one sample of data.train has the shape [28, 28]"));
}

TEST_CASE("graph request: the data has the shape of the model, not only its number of elements", "[job]") {
  const auto refusal = [](const std::vector<std::string>& overrides, const Shape& sample) {
    const TensorSpec field{"inputs", DType::kF32, sample};
    const auto request = MakeMetaGraphRequest(Job(overrides), nullptr, {&field, 1}, kLabels, 60000);
    return std::string(request.status().message());
  };

  CHECK_THAT(refusal({"model.builtin={name: resnet18, small_images: true}"}, {16, 16, 3}),
             Catch::Contains("[16, 16, 3]") && Catch::Contains("set data.transpose: [2, 0, 1]"));
  CHECK_THAT(refusal({}, {28, 28, 1}), Catch::Contains("set data.transpose: [2, 0, 1]"));
  CHECK(refusal({"model.builtin.input=[16, 16, 3]"}, {16, 16, 3}).empty());
  CHECK(refusal({}, {3, 16, 16}).empty());
  CHECK_THAT(refusal({"model.builtin.input=[1, 28, 28]"}, {784}), Catch::Contains("[784]"));
  CHECK(refusal({"model.builtin={name: mlp, hidden: [8]}"}, {16, 16, 3}).empty());

  Graph imported;
  imported.inputs = {{"x", DType::kF32, {kBatchDim, 3, 16, 16}}};
  const auto fits = [&](const Shape& sample) {
    const TensorSpec field{"inputs", DType::kF32, sample};
    return MakeMetaGraphRequest(Job(), &imported, {&field, 1}, kLabels, 60000).ok();
  };
  CHECK(fits({3, 16, 16}));
  CHECK(fits({1, 3, 16, 16}));
  CHECK_FALSE(fits({16, 16, 3}));
  CHECK_FALSE(fits({48, 16}));
  CHECK_FALSE(fits({768}));
}

TEST_CASE("graph request: a column of labels is a list of labels", "[job]") {
  const TensorSpec column{"labels", DType::kI64, {1}};
  const auto request = MakeMetaGraphRequest(Job(), nullptr, {kImages}, column, 60000);
  REQUIRE(request.ok());
  const auto metagraph = BuildMetaGraph(*request);
  INFO(metagraph.status());
  REQUIRE(metagraph.ok());
  CHECK(MakeEvaluationGraph(*metagraph, 5).ok());

  const TensorSpec target{"labels", DType::kF32, {1}};
  const auto regression =
      MakeMetaGraphRequest(Job({"model.loss=mse", "model.builtin.classes=1"}), nullptr, {kImages}, target, 60000);
  REQUIRE(regression.ok());
  CHECK(BuildMetaGraph(*regression).ok());
}

TEST_CASE("graph request: what is trained, what decays and what a pass holds", "[job]") {
  const auto metagraph = BuildMetaGraph(Request({"model.frozen=[\"conv*\"]", "train.optimizer.no_decay=[\"*.bias\"]",
                                                 "train.optimizer.weight_decay=0.1", "train.micro_batch=8"}));
  INFO(metagraph.status());
  REQUIRE(metagraph.ok());

  for (const Variable& variable : metagraph->forward.variables) {
    CHECK((variable.kind == VariableKind::kFrozen) == absl::StartsWith(variable.name, "conv"));
  }
  for (const std::string& name : metagraph->update.optimizer.no_decay) CHECK(absl::EndsWith(name, ".bias"));
  CHECK(metagraph->update.optimizer.no_decay.size() == 3);
  CHECK(metagraph->pass_batch == 8);

  const auto odd = ParseJob(kJobOfArrays, "/jobs/job.yaml", {"train.micro_batch=7"});
  CHECK_THAT(std::string(odd.status().message()), Catch::Contains("7 samples do not divide the 32"));
}

TEST_CASE("graph request: a parameter is in the first group that names it; what a group leaves out is the optimizer's",
          "[job]") {
  const auto metagraph =
      BuildMetaGraph(Request({"train.optimizer.weight_decay=0.1",
                              "train.optimizer.groups=[{parameters: [\"*1.bias\", conv1.weight], lr: 0.2}, "
                              "{parameters: \"*.bias\", weight_decay: 0}]"}));
  INFO(metagraph.status());
  REQUIRE(metagraph.ok());

  const std::vector<ParameterGroup>& groups = metagraph->update.optimizer.groups;
  REQUIRE(groups.size() == 2);
  CHECK(groups[0] ==
        ParameterGroup{.parameters = {"conv1.bias", "conv1.weight", "fc1.bias"}, .lr = 0.2, .weight_decay = 0.1});
  CHECK(groups[1] == ParameterGroup{.parameters = {"conv2.bias", "fc2.bias", "fc3.bias"},
                                    .lr = metagraph->update.schedule.lr,
                                    .weight_decay = 0});
}

TEST_CASE("graph request: the update rule is the job's, in steps", "[job]") {
  const UpdateRule sgd = Request().update;
  CHECK(sgd.optimizer.kind == OptimizerKind::kSgd);
  CHECK(sgd.optimizer.momentum == 0.9);
  CHECK(sgd.schedule.kind == ScheduleKind::kConstant);
  CHECK(sgd.schedule.warmup_steps == 0);
  CHECK_FALSE(sgd.clip_global_norm.has_value());
  CHECK(sgd.on_nan == OnNan::kStop);

  const UpdateRule adamw =
      Request({"train.optimizer={name: adamw}", "train.optimizer.momentum=null", "train.clip_norm=1",
               "train.on_nan=skip_step", "train.schedule={name: cosine, warmup: 0.5ep, min_lr: 0.01}"})
          .update;
  CHECK(adamw.optimizer.kind == OptimizerKind::kAdamW);
  CHECK(adamw.optimizer.weight_decay == 0.01);
  CHECK(adamw.clip_global_norm == 1.0);
  CHECK(adamw.on_nan == OnNan::kSkipStep);
  CHECK(adamw.schedule.kind == ScheduleKind::kCosine);
  CHECK(adamw.schedule.total_steps == 2344);
  CHECK(adamw.schedule.warmup_steps == 118);
  CHECK(adamw.schedule.min_lr == 0.01);

  const UpdateRule step =
      Request({"train.schedule={name: step, step_size: 2ep, gamma: 0.5}", "train.duration=2h"}).update;
  CHECK(step.schedule.kind == ScheduleKind::kStep);
  CHECK(step.schedule.step_size == 469);
  CHECK(step.schedule.gamma == 0.5);

  CHECK_FALSE(step.ema.has_value());
  CHECK(Request({"train.ema={}"}).update.ema == EmaRule{.decay = 0.999, .start_steps = 0});
  CHECK(Request({"train.ema={decay: 0.5, start: 2ep}"}).update.ema == EmaRule{.decay = 0.5, .start_steps = 469});

  const auto late = MakeUpdateRule(Job({"train.schedule.warmup=11ep"}), 60000);
  CHECK_THAT(std::string(late.status().message()), Catch::Contains("warmup takes 2579 steps and the job only 2344"));
}

TEST_CASE("graph request: every schedule and optimizer has its settings", "[job]") {
  const ScheduleRule milestones =
      Request({"train.schedule={name: milestones, milestones: [2ep, 1000steps], gamma: 0.5}"}).update.schedule;
  CHECK(milestones.kind == ScheduleKind::kMilestones);
  CHECK(milestones.milestones == std::vector<int64_t>{469, 1000});
  const ScheduleRule linear = Request({"train.schedule={name: linear, warmup: 100steps}"}).update.schedule;
  CHECK(linear.kind == ScheduleKind::kLinear);
  CHECK(linear.total_steps == 2344);
  const ScheduleRule cycle = Request({"train.schedule={name: one_cycle, pct_start: 0.2}"}).update.schedule;
  CHECK(cycle.kind == ScheduleKind::kOneCycle);
  CHECK(cycle.pct_start == 0.2);
  const ScheduleRule restarts =
      Request({"train.schedule={name: cosine_restarts, step_size: 1ep, growth: 2}"}).update.schedule;
  CHECK(restarts.step_size == 235);
  CHECK(restarts.growth == 2);
  const OptimizerRule rmsprop = Request({"train.optimizer={name: rmsprop, lr: 0.1, momentum: 0.5}"}).update.optimizer;
  CHECK(rmsprop.kind == OptimizerKind::kRmsProp);
  CHECK(rmsprop.momentum == 0.5);
  CHECK(rmsprop.beta2 == 0.99);
  const OptimizerRule adagrad =
      Request({"train.optimizer={name: adagrad}", "train.optimizer.momentum=null"}).update.optimizer;
  CHECK(adagrad.kind == OptimizerKind::kAdagrad);
  CHECK(adagrad.epsilon == 1e-10);
  const OptimizerRule lion =
      Request({"train.optimizer={name: lion}", "train.optimizer.momentum=null"}).update.optimizer;
  CHECK(lion.kind == OptimizerKind::kLion);
  CHECK(lion.beta1 == 0.9);
  CHECK(lion.beta2 == 0.99);
  const OptimizerRule lamb =
      Request({"train.optimizer={name: lamb}", "train.optimizer.momentum=null"}).update.optimizer;
  CHECK(lamb == OptimizerRule{.kind = OptimizerKind::kLamb, .weight_decay = 0.01, .epsilon = 1e-6});
  const OptimizerRule adafactor =
      Request({"train.optimizer={name: adafactor, min_scale: 0.01}", "train.optimizer.momentum=null"}).update.optimizer;
  CHECK(adafactor == OptimizerRule{.kind = OptimizerKind::kAdafactor, .epsilon = 0x1p-23, .min_scale = 0.01});
  const auto refused = [](const std::vector<std::string>& settings) {
    return std::string(MakeUpdateRule(Job(settings), 60000).status().message());
  };
  for (const char* listed : {"[2ep, 1ep]", "[1h]", "[soon]"}) {
    CHECK_THAT(refused({absl::StrCat("train.schedule={name: milestones, milestones: ", listed, "}")}),
               Catch::Contains("train.schedule.milestones"));
  }
  CHECK_THAT(refused({"train.schedule={name: milestones}"}), Catch::Contains("needs at least one"));
  CHECK_THAT(refused({"train.schedule={name: one_cycle, warmup: 10steps}"}), Catch::Contains("rises by itself"));
}

TEST_CASE("graph request: a preset of gpt2 says its size, and its tokens are known before the data", "[job]") {
  const JobSpec job = Job({"model.builtin={name: gpt2, preset: 774M, heads: 16, input: [64]}", "data.normalize=null"});
  const TensorSpec tokens{"inputs", DType::kI64, {64}};

  const std::vector<GraphInput> known = KnownInputs(job, nullptr);
  const auto request = MakeMetaGraphRequest(job, nullptr, {tokens}, {"labels", DType::kI64, {64}}, 60000);

  REQUIRE(known.size() == 1);
  CHECK(known[0] == GraphInput{"inputs", DType::kI64, {kBatchDim, 64}});
  REQUIRE(request.ok());
  CHECK(request->model.architecture == "gpt2");
  CHECK(request->model.layers == 36);
  CHECK(request->model.heads == 16);
  CHECK(request->model.width == 1280);
  CHECK(request->model.context == 1024);
  CHECK(request->model.vocabulary == 50257);
  CHECK(request->class_axis == ClassAxis::kLast);  // also where there are as many positions as tokens
  CHECK(KnownInputs(Job({"model.builtin={name: bert}"}), nullptr)[0].shape == Shape{kBatchDim, 512});
  CHECK(KnownInputs(Job({"model.builtin={name: gpt2}", "data.normalize=null", "data.train.inputs=null",
                         "data.train.labels=null", "data.train.tokens=t.bin", "data.train.sequence_length=32"}),
                    nullptr)[0]
            .shape == Shape{kBatchDim, 32});
  CHECK(KnownInputs(Job(), nullptr).empty());
  CHECK(KnownRange(job, nullptr, "inputs") == IndexRange{0, 50256, "model.builtin.vocabulary"});
  CHECK(KnownRange(Job(), nullptr, "inputs") == std::nullopt);
}

TEST_CASE("graph request: images of one size with a label each are mixed, and nothing else", "[job]") {
  const auto refusal = [](const Graph* imported, const std::vector<TensorSpec>& inputs, const TensorSpec& labels,
                          const std::string& model = "{name: mlp}") {
    const JobSpec job = Job({"data.augment.mixup=0.2", "model.builtin=" + model});
    return std::string(MakeMetaGraphRequest(job, imported, inputs, labels, 60000).status().message());
  };
  const TensorSpec image{"inputs", DType::kF32, {3, 8, 8}}, column{"labels", DType::kI64, {1}};
  CHECK(refusal(nullptr, {image}, kLabels).empty());
  CHECK(refusal(nullptr, {image}, column).empty());
  CHECK(refusal(nullptr, {kImages}, kLabels, "{name: lenet}").empty());
  CHECK_THAT(refusal(nullptr, {image}, {"labels", DType::kI64, {8, 8}}),
             Catch::Contains("data.augment.mixup: mixes samples with one label each, and those of data.train have [8"));
  CHECK_THAT(refusal(nullptr, {{"inputs", DType::kF32, {64}}}, kLabels),
             Catch::Contains("data.augment: changes images"));
  Graph two;
  two.inputs = {{"a", DType::kF32, {kBatchDim, 3, 8, 8}}, {"b", DType::kF32, {kBatchDim, 1, 8, 8}}};
  CHECK(refusal(&two, {{"a", DType::kF32, {3, 8, 8}}, {"b", DType::kF32, {1, 8, 8}}}, kLabels).empty());
  two.inputs[1].shape = {kBatchDim, 1, 4, 8};
  CHECK_THAT(refusal(&two, {{"a", DType::kF32, {3, 8, 8}}, {"b", DType::kF32, {1, 4, 8}}}, kLabels),
             Catch::Contains("data.augment.mixup: mixes images") && Catch::Contains("'b' is F32[1, 4, 8]"));
  two.inputs[1].shape = {kBatchDim, 7};
  CHECK_THAT(refusal(&two, {{"a", DType::kF32, {3, 8, 8}}, {"b", DType::kF32, {7}}}, kLabels),
             Catch::Contains("'b' is F32[7]"));

  CHECK(Request({"data.augment.cutmix=1", "model.builtin={name: mlp, input: [1, 28, 28]}"}).loss.mixes_labels);
  CHECK_FALSE(Request().loss.mixes_labels);
}

TEST_CASE("graph request: an imported model's tables say which numbers its inputs take", "[job]") {
  Graph graph;
  graph.inputs = {{"words", DType::kI64, {kBatchDim, 4}}};
  graph.variables = {{"table", DType::kF32, {30, 8}, VariableKind::kParameter, {}}};
  graph.nodes = {{"picked", OpType::kGather, {"table", "words"}, {"picked"}, GatherAttributes{}}};

  CHECK(KnownRange(Job(), &graph, "words") == IndexRange{-30, 29, "the rows of 'table'"});
}

}  // namespace
}  // namespace lockstep
