#include "common/graph/serialize_update.h"

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// The enumerations of the proto list the same kinds in the same order, behind "unspecified".
template <typename To, typename From>
To ToProtoEnum(From value) {
  return static_cast<To>(static_cast<int>(value) + 1);
}

template <typename To>
absl::Status FromProtoEnum(int number, int last, absl::string_view what, To* value) {
  if (number < 1 || number > last) {
    return absl::InvalidArgumentError(absl::StrCat("metagraph: ", what, " number ", number, " is not known"));
  }
  *value = static_cast<To>(number - 1);
  return absl::OkStatus();
}

}  // namespace

void WriteLoss(const LossRule& loss, proto::Loss* message) {
  message->set_kind(ToProtoEnum<proto::Loss::Kind>(loss.kind));
  message->set_output(loss.output);
  message->set_label(loss.label);
  if (loss.ignore_index.has_value()) message->set_ignore_index(*loss.ignore_index);
  message->mutable_class_weights()->Assign(loss.class_weights.begin(), loss.class_weights.end());
  message->set_huber_delta(loss.huber_delta);
  message->set_classes_last(loss.classes_last);
  message->set_label_smoothing(loss.label_smoothing);
  message->set_mixes_labels(loss.mixes_labels);
}

absl::StatusOr<LossRule> ReadLoss(const proto::Loss& message) {
  LossRule loss;
  LS_RETURN_IF_ERROR(FromProtoEnum(message.kind(), proto::Loss::GRAPH_OUTPUT, "loss", &loss.kind));
  loss.output = message.output();
  loss.label = message.label();
  if (message.has_ignore_index()) loss.ignore_index = message.ignore_index();
  loss.class_weights.assign(message.class_weights().begin(), message.class_weights().end());
  loss.huber_delta = message.huber_delta();
  loss.classes_last = message.classes_last();
  loss.label_smoothing = message.label_smoothing();
  loss.mixes_labels = message.mixes_labels();
  return loss;
}

void WriteUpdate(const UpdateRule& update, proto::Update* message) {
  proto::Optimizer* optimizer = message->mutable_optimizer();
  optimizer->set_kind(ToProtoEnum<proto::Optimizer::Kind>(update.optimizer.kind));
  optimizer->set_momentum(update.optimizer.momentum);
  optimizer->set_nesterov(update.optimizer.nesterov);
  optimizer->set_weight_decay(update.optimizer.weight_decay);
  optimizer->set_beta1(update.optimizer.beta1);
  optimizer->set_beta2(update.optimizer.beta2);
  optimizer->set_epsilon(update.optimizer.epsilon);
  if (update.optimizer.kind == OptimizerKind::kAdafactor) {
    optimizer->set_beta2_decay(update.optimizer.beta2_decay);
    optimizer->set_min_scale(update.optimizer.min_scale);
    optimizer->set_max_rms(update.optimizer.max_rms);
  }
  optimizer->mutable_no_decay()->Assign(update.optimizer.no_decay.begin(), update.optimizer.no_decay.end());
  for (const ParameterGroup& group : update.optimizer.groups) {
    proto::ParameterGroup* const written = optimizer->add_groups();
    written->mutable_parameters()->Assign(group.parameters.begin(), group.parameters.end());
    written->set_lr(group.lr);
    written->set_weight_decay(group.weight_decay);
  }
  proto::Schedule* schedule = message->mutable_schedule();
  schedule->set_kind(ToProtoEnum<proto::Schedule::Kind>(update.schedule.kind));
  schedule->set_lr(update.schedule.lr);
  schedule->set_warmup_steps(update.schedule.warmup_steps);
  schedule->set_step_size(update.schedule.step_size);
  schedule->set_gamma(update.schedule.gamma);
  schedule->set_total_steps(update.schedule.total_steps);
  schedule->set_min_lr(update.schedule.min_lr);
  schedule->mutable_milestones()->Assign(update.schedule.milestones.begin(), update.schedule.milestones.end());
  if (update.schedule.kind == ScheduleKind::kPolynomial) schedule->set_power(update.schedule.power);
  if (update.schedule.kind == ScheduleKind::kCosineRestarts) schedule->set_growth(update.schedule.growth);
  if (update.schedule.kind == ScheduleKind::kOneCycle) {
    schedule->set_pct_start(update.schedule.pct_start);
    schedule->set_div_factor(update.schedule.div_factor);
    schedule->set_final_div_factor(update.schedule.final_div_factor);
  }
  if (update.clip_global_norm.has_value()) message->set_clip_global_norm(*update.clip_global_norm);
  message->set_on_nan(ToProtoEnum<proto::Update::OnNan>(update.on_nan));
  message->set_reduction(ToProtoEnum<proto::Update::Reduction>(update.reduction));
  if (update.ema.has_value()) {
    message->mutable_ema()->set_decay(update.ema->decay);
    message->mutable_ema()->set_start_steps(update.ema->start_steps);
  }
}

absl::StatusOr<UpdateRule> ReadUpdate(const proto::Update& message) {
  UpdateRule update;
  const proto::Optimizer& optimizer = message.optimizer();
  LS_RETURN_IF_ERROR(FromProtoEnum(optimizer.kind(), proto::Optimizer::ADAFACTOR, "optimizer", &update.optimizer.kind));
  update.optimizer.momentum = optimizer.momentum();
  update.optimizer.nesterov = optimizer.nesterov();
  update.optimizer.weight_decay = optimizer.weight_decay();
  update.optimizer.beta1 = optimizer.beta1();
  update.optimizer.beta2 = optimizer.beta2();
  update.optimizer.epsilon = optimizer.epsilon();
  if (update.optimizer.kind == OptimizerKind::kAdafactor) {
    update.optimizer.beta2_decay = optimizer.beta2_decay();
    update.optimizer.min_scale = optimizer.min_scale();
    update.optimizer.max_rms = optimizer.max_rms();
  }
  update.optimizer.no_decay.assign(optimizer.no_decay().begin(), optimizer.no_decay().end());
  for (const proto::ParameterGroup& group : optimizer.groups()) {
    update.optimizer.groups.push_back({.parameters = {group.parameters().begin(), group.parameters().end()},
                                       .lr = group.lr(),
                                       .weight_decay = group.weight_decay()});
  }
  const proto::Schedule& schedule = message.schedule();
  LS_RETURN_IF_ERROR(FromProtoEnum(schedule.kind(), proto::Schedule::PLATEAU, "schedule", &update.schedule.kind));
  update.schedule.lr = schedule.lr();
  update.schedule.warmup_steps = schedule.warmup_steps();
  update.schedule.step_size = schedule.step_size();
  update.schedule.gamma = schedule.gamma();
  update.schedule.total_steps = schedule.total_steps();
  update.schedule.min_lr = schedule.min_lr();
  update.schedule.milestones.assign(schedule.milestones().begin(), schedule.milestones().end());
  if (update.schedule.kind == ScheduleKind::kPolynomial) update.schedule.power = schedule.power();
  if (update.schedule.kind == ScheduleKind::kCosineRestarts) update.schedule.growth = schedule.growth();
  if (update.schedule.kind == ScheduleKind::kOneCycle) {
    update.schedule.pct_start = schedule.pct_start();
    update.schedule.div_factor = schedule.div_factor();
    update.schedule.final_div_factor = schedule.final_div_factor();
  }
  if (message.has_clip_global_norm()) update.clip_global_norm = message.clip_global_norm();
  LS_RETURN_IF_ERROR(FromProtoEnum(message.on_nan(), proto::Update::SKIP_STEP, "on_nan", &update.on_nan));
  LS_RETURN_IF_ERROR(FromProtoEnum(message.reduction(), proto::Update::FAST, "reduction", &update.reduction));
  if (message.has_ema()) update.ema = {.decay = message.ema().decay(), .start_steps = message.ema().start_steps()};
  return update;
}

}  // namespace lockstep
