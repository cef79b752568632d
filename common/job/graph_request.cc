#include "common/job/graph_request.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/schedule.h"
#include "common/job/extent.h"
#include "common/job/image_rules.h"
#include "common/job/normalisation.h"
#include "common/job/sample_form.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr char kBuiltinInput[] = "inputs";

const char* ArchitectureName(job::BuiltinModel::Name name) {
  switch (name) {
    case job::BuiltinModel::NAME_LENET:
      return "lenet";
    case job::BuiltinModel::NAME_RESNET18:
      return "resnet18";
    case job::BuiltinModel::NAME_RESNET34:
      return "resnet34";
    case job::BuiltinModel::NAME_RESNET50:
      return "resnet50";
    case job::BuiltinModel::NAME_GPT2:
      return "gpt2";
    case job::BuiltinModel::NAME_BERT:
      return "bert";
    case job::BuiltinModel::NAME_VIT:
      return "vit";
    default:
      return "mlp";
  }
}

ModelSpec MakeModel(const job::BuiltinModel& builtin) {
  ModelSpec model;
  model.architecture = ArchitectureName(builtin.name());
  if (builtin.has_classes()) model.outputs = builtin.classes();
  model.hidden_sizes.assign(builtin.hidden().begin(), builtin.hidden().end());
  if (builtin.activation() == job::BuiltinModel::ACTIVATION_SIGMOID) model.activation = "sigmoid";
  if (builtin.activation() == job::BuiltinModel::ACTIVATION_TANH) model.activation = "tanh";
  model.dropout = builtin.dropout();
  model.batch_norm = builtin.batch_norm();
  model.small_images = builtin.small_images();
  model.layers = builtin.layers();
  model.heads = builtin.heads();
  model.width = builtin.width();
  model.context = builtin.context();
  model.vocabulary = builtin.vocabulary();
  model.patch = builtin.patch();
  return model;
}

LossRule MakeLoss(const job::Model& model) {
  LossRule rule;
  if (model.loss() == "softmax_cross_entropy") {
    rule.kind = LossKind::kSoftmaxCrossEntropy;
    rule.ignore_index = model.ignore_index();
    rule.label_smoothing = model.label_smoothing();
  } else if (model.loss() == "mse") {
    rule.kind = LossKind::kMse;
  } else if (model.loss() == "l1") {
    rule.kind = LossKind::kL1;
  } else if (model.loss() == "huber") {
    rule.kind = LossKind::kHuber;
    rule.huber_delta = model.huber_delta();
  } else if (model.loss() == "bce_with_logits") {
    rule.kind = LossKind::kBceWithLogits;
  } else {
    LS_CHECK(absl::StartsWith(model.loss(), "output:"), "a resolved job names a known loss");
    rule.kind = LossKind::kGraphOutput;
    rule.output = model.loss().substr(7);
  }
  return rule;
}

ClassAxis MakeClassAxis(job::Model::ClassAxis axis) {
  switch (axis) {
    case job::Model::CLASS_AXIS_SECOND:
      return ClassAxis::kSecond;
    case job::Model::CLASS_AXIS_LAST:
      return ClassAxis::kLast;
    default:
      return ClassAxis::kAuto;
  }
}

bool TakesTokens(const job::BuiltinModel& builtin) {
  return builtin.name() == job::BuiltinModel::NAME_GPT2 || builtin.name() == job::BuiltinModel::NAME_BERT;
}

// What the job says of one sample of a built-in model; empty where that is left to the data.
Shape StatedShape(const job::BuiltinModel& builtin, const job::DataFiles& files) {
  if (!builtin.input().empty() || !TakesTokens(builtin)) return {builtin.input().begin(), builtin.input().end()};
  return {files.has_sequence_length() ? files.sequence_length() : builtin.context()};
}

// `delivered`: the shape of one sample, as data.reshape and data.transpose have made it.
absl::StatusOr<Shape> InputShape(const JobSpec& spec, const Shape& delivered) {
  const job::BuiltinModel& builtin = spec.model().builtin();
  const bool flattens = builtin.name() == job::BuiltinModel::NAME_MLP;
  Shape shape = StatedShape(builtin, spec.data().train());
  if (!shape.empty()) {
    const auto elements = CheckedNumElements(shape);
    if (SameSample(shape, delivered)) return shape;
    if (flattens && elements.ok() && *elements == NumElements(delivered)) return shape;
    return absl::InvalidArgumentError(absl::StrCat("model.builtin.input is ", ShapeString(shape),
                                                   ", one sample of data.train has the shape ", ShapeString(delivered),
                                                   "; give the same shape, or leave it out"));
  }
  shape = delivered;
  if (builtin.name() == job::BuiltinModel::NAME_LENET && shape.size() == 2) shape.insert(shape.begin(), 1);
  if (flattens) return shape;
  const absl::Status first = CheckChannelsFirst(shape);
  if (first.ok()) return shape;
  return absl::Status(first.code(), absl::StrCat("one sample of data.train has the shape ", first.message()));
}

Shape WithBatch(const Shape& sample) {
  Shape shape = {kBatchDim};
  shape.insert(shape.end(), sample.begin(), sample.end());
  return shape;
}

// Names and shapes that one sample of the data takes in the model.
absl::StatusOr<SignatureInput> ImportedInput(const Graph& imported, const TensorSpec& field, bool only) {
  const auto found = only ? imported.inputs.begin()
                          : std::find_if(imported.inputs.begin(), imported.inputs.end(),
                                         [&](const GraphInput& input) { return input.name == field.name; });
  if (found == imported.inputs.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.onnx: the model has no input '", field.name, "', which data.train gives"));
  }
  const Shape& shape = found->shape;
  if (shape.empty() || shape[0] != kBatchDim || !SameSample(Shape(shape.begin() + 1, shape.end()), field.shape)) {
    return absl::InvalidArgumentError(absl::StrCat("model.onnx: the input '", found->name, "' is ", ShapeString(shape),
                                                   " (-1: the batch), one sample of data.train is ",
                                                   ShapeString(field.shape)));
  }
  return SignatureInput{.name = found->name,
                        .field = field.name,
                        .role = InputRole::kFeature,
                        .dtype = field.dtype,
                        .shape = shape,
                        .normalisation = {}};
}

absl::StatusOr<SignatureInput> BuiltinInput(const JobSpec& spec, const TensorSpec& field) {
  LS_ASSIGN_OR_RETURN(const Shape sample, InputShape(spec, field.shape));
  return SignatureInput{.name = kBuiltinInput,
                        .field = field.name,
                        .role = InputRole::kFeature,
                        .dtype = field.dtype,
                        .shape = WithBatch(sample),
                        .normalisation = {}};
}

OptimizerKind KindOf(job::Optimizer::Name name) {
  switch (name) {
    case job::Optimizer::NAME_ADAM:
      return OptimizerKind::kAdam;
    case job::Optimizer::NAME_ADAMW:
      return OptimizerKind::kAdamW;
    case job::Optimizer::NAME_RMSPROP:
      return OptimizerKind::kRmsProp;
    case job::Optimizer::NAME_ADAGRAD:
      return OptimizerKind::kAdagrad;
    case job::Optimizer::NAME_LION:
      return OptimizerKind::kLion;
    case job::Optimizer::NAME_LAMB:
      return OptimizerKind::kLamb;
    case job::Optimizer::NAME_ADAFACTOR:
      return OptimizerKind::kAdafactor;
    default:
      return OptimizerKind::kSgd;
  }
}

OptimizerRule MakeOptimizer(const job::Optimizer& optimizer) {
  OptimizerRule rule;
  rule.weight_decay = optimizer.weight_decay();
  if (optimizer.name() == job::Optimizer::NAME_SGD) {
    rule.kind = OptimizerKind::kSgd;
    rule.momentum = optimizer.momentum();
    rule.nesterov = optimizer.nesterov();
    return rule;
  }
  rule.kind = KindOf(optimizer.name());
  if (rule.kind == OptimizerKind::kRmsProp) rule.momentum = optimizer.momentum();
  // A resolved job has those alone that its optimizer reads.
  if (optimizer.has_beta1()) rule.beta1 = optimizer.beta1();
  if (optimizer.has_beta2()) rule.beta2 = optimizer.beta2();
  if (optimizer.has_eps()) rule.epsilon = optimizer.eps();
  if (optimizer.has_beta2_decay()) rule.beta2_decay = optimizer.beta2_decay();
  if (optimizer.has_min_scale()) rule.min_scale = optimizer.min_scale();
  if (optimizer.has_max_rms()) rule.max_rms = optimizer.max_rms();
  return rule;
}

absl::StatusOr<ScheduleRule> MakeSchedule(const JobSpec& spec, int64_t train_samples) {
  const job::Schedule& schedule = spec.train().schedule();
  const int64_t batch = spec.train().global_batch_size();
  ScheduleRule rule;
  rule.lr = spec.train().optimizer().lr();
  // A resolved job gives these in steps, epochs or samples, never as time.
  rule.warmup_steps = *StepsOf(schedule.warmup(), train_samples, batch);
  const std::optional<int64_t> total = TotalSteps(spec, train_samples);
  if (total.has_value() && rule.warmup_steps >= *total && rule.warmup_steps > 0) {
    return absl::InvalidArgumentError(absl::StrCat("train.schedule.warmup takes ", rule.warmup_steps,
                                                   " steps and the job only ", *total,
                                                   "; shorten it, or raise train.duration"));
  }
  rule.kind = static_cast<ScheduleKind>(schedule.name() - job::Schedule::NAME_CONSTANT);
  if (EndsWithJob(rule.kind)) {
    LS_CHECK(total.has_value(), "a resolved job has a last step where its schedule needs one");
    rule.total_steps = *total;
  }
  if (rule.kind == ScheduleKind::kOneCycle && rule.warmup_steps > 0) {
    return absl::InvalidArgumentError("train.schedule.warmup: one_cycle rises by itself; take the warmup out");
  }
  // A resolved job has those alone that its schedule reads.
  if (schedule.has_step_size()) rule.step_size = *StepsOf(schedule.step_size(), train_samples, batch);
  if (schedule.has_gamma()) rule.gamma = schedule.gamma();
  if (schedule.has_min_lr()) rule.min_lr = schedule.min_lr();
  if (schedule.has_power()) rule.power = schedule.power();
  if (schedule.has_growth()) rule.growth = schedule.growth();
  if (schedule.has_pct_start()) rule.pct_start = schedule.pct_start();
  if (schedule.has_div_factor()) rule.div_factor = schedule.div_factor();
  if (schedule.has_final_div_factor()) rule.final_div_factor = schedule.final_div_factor();
  for (const std::string& text : schedule.milestones()) {
    const absl::StatusOr<job::Amount> amount = ParseAmount(text);
    const std::optional<int64_t> steps = amount.ok() ? StepsOf(*amount, train_samples, batch) : std::nullopt;
    if (!steps.has_value() || (!rule.milestones.empty() && *steps <= rule.milestones.back())) {
      return absl::InvalidArgumentError(absl::StrCat("train.schedule.milestones: '", text,
                                                     "' is no amount in ep, steps or samples behind the one before"));
    }
    rule.milestones.push_back(*steps);
  }
  if (rule.kind == ScheduleKind::kMilestones && rule.milestones.empty()) {
    return absl::InvalidArgumentError(
        "train.schedule.milestones: the schedule needs at least one, such as [30ep, 60ep]");
  }
  return rule;
}

std::vector<ParameterGroup> MakeGroups(const job::Optimizer& optimizer) {
  std::vector<ParameterGroup> groups;
  for (const job::ParameterGroup& given : optimizer.groups()) {
    groups.push_back({.parameters = {given.parameters().begin(), given.parameters().end()},
                      .lr = given.has_lr() ? given.lr() : optimizer.lr(),
                      .weight_decay = given.has_weight_decay() ? given.weight_decay() : optimizer.weight_decay()});
  }
  return groups;
}

// InvalidArgument when none of the inputs is an image that the job's rule can change.
absl::Status CheckAugment(const job::Data& data, absl::Span<const SignatureInput> inputs) {
  if (!data.has_augment()) return absl::OkStatus();
  std::string given;
  for (const SignatureInput& input : inputs) {
    const Shape sample(input.shape.begin() + 1, input.shape.end());
    absl::StrAppend(&given, given.empty() ? "" : ", ", DTypeName(input.dtype), ShapeString(sample));
    if (input.dtype != DType::kF32 || sample.size() != 3) continue;
    if (data.augment().crop_padding() < std::min(sample[1], sample[2])) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("data.augment.crop_padding: moves an image of ", ShapeString(sample),
                                                   " out of sight; choose a smaller one"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("data.augment: changes images, float32 inputs of [channels, height, width]; the model takes ", given,
                   "; remove the section"));
}

// InvalidArgument when an input is no image that can be mixed, or a sample has no label of its own. `inputs` and
// `labels` are what the data give.
absl::Status CheckMixing(const job::Data& data, absl::Span<const SignatureInput> inputs, const TensorSpec& labels) {
  if (!MixesSamples(data)) return absl::OkStatus();
  const absl::string_view key = data.augment().has_mixup() ? "data.augment.mixup" : "data.augment.cutmix";
  for (const SignatureInput& input : inputs) {
    const Shape sample(input.shape.begin() + 1, input.shape.end());
    const Shape first(inputs[0].shape.begin() + 1, inputs[0].shape.end());
    const bool image = input.dtype == DType::kF32 && sample.size() == 3;
    if (image && first.size() == 3 && sample[1] == first[1] && sample[2] == first[2]) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        key, ": mixes images, float32 inputs of [channels, height, width] of one height and width; the model's input '",
        input.name, "' is ", DTypeName(input.dtype), ShapeString(sample), "; remove the key"));
  }
  if (labels.shape.empty() || labels.shape == Shape{1}) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(key,
                                                 ": mixes samples with one label each, and those of data.train have ",
                                                 ShapeString(labels.shape), "; remove the key"));
}

}  // namespace

absl::StatusOr<UpdateRule> MakeUpdateRule(const JobSpec& spec, int64_t train_samples) {
  UpdateRule rule;
  rule.optimizer = MakeOptimizer(spec.train().optimizer());
  LS_ASSIGN_OR_RETURN(rule.schedule, MakeSchedule(spec, train_samples));
  if (spec.train().has_clip_norm()) rule.clip_global_norm = spec.train().clip_norm();
  rule.on_nan = spec.train().on_nan() == job::Train::ON_NAN_SKIP_STEP ? OnNan::kSkipStep : OnNan::kStop;
  if (spec.train().has_ema()) {
    const job::Ema& ema = spec.train().ema();
    const int64_t batch = spec.train().global_batch_size();
    rule.ema = {.decay = ema.decay(), .start_steps = *StepsOf(ema.start(), train_samples, batch)};
  }
  rule.reduction =
      spec.train().reduction() == job::Train::REDUCTION_FAST ? ReductionMode::kFast : ReductionMode::kExact;
  return rule;
}

std::vector<GraphInput> KnownInputs(const JobSpec& spec, const Graph* imported) {
  if (imported != nullptr) return imported->inputs;
  const job::BuiltinModel& builtin = spec.model().builtin();
  const Shape stated = StatedShape(builtin, spec.data().train());
  if (TakesTokens(builtin)) return {{kBuiltinInput, DType::kI64, WithBatch(stated)}};
  if (stated.empty() || builtin.name() == job::BuiltinModel::NAME_MLP) return {};
  return {{kBuiltinInput, DType::kF32, WithBatch(stated)}};
}

std::optional<IndexRange> KnownRange(const JobSpec& spec, const Graph* imported, const std::string& input) {
  if (imported != nullptr) return PickedRows(*imported, input);
  const job::BuiltinModel& builtin = spec.model().builtin();
  if (!TakesTokens(builtin)) return std::nullopt;
  return IndexRange{0, builtin.vocabulary() - 1, "model.builtin.vocabulary"};
}

absl::StatusOr<Graph> BuildBuiltin(const job::BuiltinModel& builtin, const std::string& input) {
  const Shape sample = StatedShape(builtin, {});
  if (sample.empty()) {
    return absl::InvalidArgumentError("the shape of one sample is not known; give input, e.g. input=[3, 224, 224]");
  }
  const DType dtype = TakesTokens(builtin) ? DType::kI64 : DType::kF32;
  return BuildArchitecture(MakeModel(builtin), {input, dtype, WithBatch(sample)});
}

absl::StatusOr<MetaGraphRequest> MakeMetaGraphRequest(const JobSpec& spec, const Graph* imported,
                                                      absl::Span<const TensorSpec> inputs, const TensorSpec& labels,
                                                      int64_t train_samples) {
  MetaGraphRequest request;
  if (imported != nullptr) {
    request.imported = *imported;
  } else {
    request.model = MakeModel(spec.model().builtin());
  }
  for (const TensorSpec& field : inputs) {
    absl::StatusOr<SignatureInput> input =
        imported != nullptr ? ImportedInput(*imported, field, inputs.size() == 1 && imported->inputs.size() == 1)
                            : BuiltinInput(spec, field);
    LS_RETURN_IF_ERROR(input.status());
    if (IsFloating(field.dtype)) input->normalisation = MakeNormalisation(spec.data());
    request.inputs.push_back(*std::move(input));
  }
  LS_RETURN_IF_ERROR(CheckAugment(spec.data(), request.inputs));
  LS_RETURN_IF_ERROR(CheckMixing(spec.data(), request.inputs, labels));
  if (!labels.name.empty()) {
    request.inputs.push_back({.name = "labels",
                              .field = "labels",
                              .role = InputRole::kLabel,
                              .dtype = labels.dtype,
                              .shape = WithBatch(labels.shape),
                              .normalisation = {}});
  }
  request.loss = MakeLoss(spec.model());
  request.loss.mixes_labels = MixesSamples(spec.data());
  request.class_axis = MakeClassAxis(spec.model().class_axis());
  const bool scores_positions = imported == nullptr && spec.model().builtin().name() == job::BuiltinModel::NAME_GPT2;
  if (scores_positions && request.class_axis == ClassAxis::kAuto) request.class_axis = ClassAxis::kLast;
  LS_ASSIGN_OR_RETURN(request.update, MakeUpdateRule(spec, train_samples));
  request.trainable.assign(spec.model().trainable().begin(), spec.model().trainable().end());
  request.frozen.assign(spec.model().frozen().begin(), spec.model().frozen().end());
  const auto& no_decay = spec.train().optimizer().no_decay();
  request.no_decay.assign(no_decay.begin(), no_decay.end());
  request.groups = MakeGroups(spec.train().optimizer());
  request.pass_batch = PassBatch(spec);
  if (spec.train().precision() == job::Train::PRECISION_BF16) request.precision = Precision::kBf16;
  return request;
}

}  // namespace lockstep
