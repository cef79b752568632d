#include "common/training/training_policy.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/job/extent.h"
#include "common/job/units.h"
#include "common/random/random.h"

namespace lockstep {
namespace {

// Steps that saves are apart; 0 where a clock decides.
int64_t PeriodSteps(const job::Amount& every, int64_t samples, int64_t batch) {
  return StepsOf(every, samples, batch).value_or(0);
}

Metric MetricOf(job::Eval::Metric metric) {
  switch (metric) {
    case job::Eval::METRIC_ACCURACY:
      return Metric::kAccuracy;
    case job::Eval::METRIC_TOP5:
      return Metric::kTop5;
    case job::Eval::METRIC_PERPLEXITY:
      return Metric::kPerplexity;
    default:
      return Metric::kLoss;
  }
}

EvaluationRule RuleOf(const JobSpec& spec, const DataFacts& facts) {
  EvaluationRule rule;
  rule.metric = MetricOf(spec.eval().metric());
  rule.higher_is_better = spec.eval().better() == job::Eval::BETTER_HIGHER;
  rule.keep_best = spec.checkpoint().keep_best();
  rule.patience = static_cast<uint64_t>(spec.eval().early_stop().patience());
  rule.min_delta = spec.eval().early_stop().min_delta();
  const job::Schedule& schedule = spec.train().schedule();
  rule.plateau.cuts = schedule.name() == job::Schedule::NAME_PLATEAU;
  rule.plateau.patience = static_cast<uint64_t>(schedule.patience());
  rule.plateau.threshold = schedule.threshold();
  rule.plateau.cooldown = static_cast<uint64_t>(schedule.cooldown());
  rule.id = StreamOfName(absl::StrCat(static_cast<int>(rule.metric), rule.higher_is_better ? " higher " : " lower ",
                                      static_cast<int>(spec.eval().weights()), " ", facts.eval_samples, " ",
                                      facts.eval_sha256, rule.keep_best ? " kept" : ""));
  return rule;
}

// Those hooks that stop the job at steps which are known before.
std::vector<StopRule> StopsOf(const JobSpec& spec, int64_t samples) {
  std::vector<StopRule> stops;
  for (const job::Hook& hook : spec.hooks()) {
    if (!hook.stop()) continue;
    StopRule rule;
    rule.step = static_cast<uint64_t>(hook.step());
    if (hook.has_every()) {
      rule.every = static_cast<uint64_t>(PeriodSteps(hook.every(), samples, spec.train().global_batch_size()));
    }
    rule.on_evaluation = hook.on() == job::Hook::ON_EVALUATION;
    if (rule != StopRule()) stops.push_back(rule);
  }
  return stops;
}

}  // namespace

int64_t EvalBatch(const JobSpec& spec) { return PassBatch(spec); }

int64_t EvalSlices(const JobSpec& spec, int64_t eval_samples) {
  const int64_t per_slice = EvalBatch(spec) * spec.train().logical_shards();
  return (eval_samples + per_slice - 1) / per_slice;
}

std::string MadeWithSettings(const JobSpec& spec) {
  JobSpec built_in;
  if (spec.data().has_eval()) {
    *built_in.mutable_data()->mutable_eval() = spec.data().eval();
    built_in.mutable_eval()->set_weights(spec.eval().weights());
  }
  if (spec.eval().has_sample()) *built_in.mutable_eval()->mutable_sample() = spec.eval().sample();
  for (const job::Hook& hook : spec.hooks()) {
    const bool looks = hook.statistics_size() > 0 || hook.histograms_size() > 0 || hook.on() == job::Hook::ON_NAN;
    if (looks || hook.has_profile()) *built_in.add_hooks() = hook;
  }
  return Sha256Hex(built_in.SerializeAsString());
}

absl::StatusOr<TrainingPolicy> MakeTrainingPolicy(const JobSpec& spec, const DataFacts& facts) {
  const int64_t batch = spec.train().global_batch_size();
  TrainingPolicy policy;
  policy.end_step = TotalSteps(spec, facts.train_samples).value_or(std::numeric_limits<int64_t>::max());
  if (policy.end_step == 0) return absl::InvalidArgumentError("train.duration: the job has no step");
  policy.snapshot_every_steps = PeriodSteps(spec.checkpoint().every(), facts.train_samples, batch);
  policy.wait_for_saves = spec.checkpoint().when_busy() == job::Checkpoint::WHEN_BUSY_WAIT;
  if (facts.eval_samples > 0) {
    policy.eval_slices = EvalSlices(spec, facts.eval_samples);
    policy.eval_every_steps = PeriodSteps(spec.eval().every(), facts.train_samples, batch);
    policy.evaluation = RuleOf(spec, facts);
    policy.samples_text = spec.eval().has_sample();
  }
  policy.stops = StopsOf(spec, facts.train_samples);
  policy.settings = MadeWithSettings(spec);
  policy.logical_shards = spec.train().logical_shards();
  // Who computed a step shows in its bits: each generation is a lineage of its own, for the chief (JobPolicy) as for
  // the workers.
  policy.digest_in_acks = spec.train().reduction() == job::Train::REDUCTION_FAST;
  policy.chief_timeout = job::ToDuration(spec.cluster().chief_timeout());
  policy.grace_period = job::ToDuration(spec.failure().grace_period());
  return policy;
}

}  // namespace lockstep
