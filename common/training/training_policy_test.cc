#include "common/training/training_policy.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/golden_rates.h"
#include "common/graph/schedule.h"
#include "common/job/extent.h"
#include "common/job/graph_request.h"

namespace lockstep {
namespace {

JobSpec Job(const std::string& duration, const std::string& every) {
  auto spec = ParseJob(
      "name: j\nmodel: {builtin: {name: lenet, classes: 10}, loss: softmax_cross_entropy}\n"
      "data:\n  train: {inputs: a, labels: b}\n  eval: {inputs: c, labels: d}\n"
      "train: {duration: " +
          duration +
          ", global_batch_size: 256, logical_shards: 8, optimizer: {lr: 0.1}}\n"
          "eval: {every: 1ep}\ncheckpoint: {every: " +
          every + "}\n",
      "/jobs/job.yaml");
  INFO(spec.status().ToString());
  REQUIRE(spec.ok());
  return *spec;
}

const DataFacts kFacts{.train_samples = 60000, .eval_samples = 10000, .inputs = {}, .labels = {}};

TEST_CASE("training policy: epochs become steps, rounded up", "[training]") {
  const auto policy = MakeTrainingPolicy(Job("10ep", "2ep"), kFacts);
  REQUIRE(policy.ok());
  CHECK(policy->end_step == 2344);
  CHECK(policy->eval_every_steps == 235);
  CHECK(policy->snapshot_every_steps == 469);
  CHECK(policy->logical_shards == 8);
  CHECK(policy->grace_period == absl::Seconds(25));
}

TEST_CASE("training policy: a save that a clock asks for is no function of the step", "[training]") {
  CHECK(MakeTrainingPolicy(Job("10ep", "10m"), kFacts)->snapshot_every_steps == 0);
}

TEST_CASE("training policy: digests go with acknowledgements where who computed a step shows in its bits",
          "[training]") {
  JobSpec spec = Job("10ep", "10m");
  CHECK_FALSE(MakeTrainingPolicy(spec, kFacts)->digest_in_acks);
  spec.mutable_train()->set_reduction(job::Train::REDUCTION_FAST);
  CHECK(MakeTrainingPolicy(spec, kFacts)->digest_in_acks);
}

TEST_CASE("training policy: evaluation slices cover the set, one global batch each", "[training]") {
  CHECK(PassBatch(Job("10ep", "10m")) == 32);
  CHECK(EvalSlices(Job("10ep", "10m"), 10000) == 40);
  CHECK(EvalSlices(Job("10ep", "10m"), 256) == 1);
  CHECK(EvalSlices(Job("10ep", "10m"), 257) == 2);
  DataFacts facts = kFacts;
  facts.eval_samples = 0;
  CHECK(MakeTrainingPolicy(Job("10ep", "10m"), facts)->eval_slices == 0);
}

// The rate after each of these metrics.
std::vector<double> RatesBehind(const JobSpec& spec, const std::vector<double>& metrics) {
  const EvaluationRule rule = MakeTrainingPolicy(spec, kFacts)->evaluation;
  const ScheduleRule schedule = MakeUpdateRule(spec, kFacts.train_samples)->schedule;
  EvaluationLedger ledger;
  std::vector<double> rates;
  for (size_t i = 0; i < metrics.size(); ++i) {
    // Both are their metric: a sum over 16 samples.
    const double sum = metrics[i] * 16;
    ledger = Judge(rule, ledger, 10 * (i + 1), {.loss = sum, .denominator = 16, .correct = sum, .counted = 16});
    rates.push_back(LearningRate(schedule, static_cast<int64_t>(ledger.step), static_cast<int64_t>(ledger.rate_cuts)));
  }
  return rates;
}

TEST_CASE("training policy: the rates of a plateau are PyTorch's", "[training]") {
  JobSpec spec = Job("10ep", "10m");
  job::Schedule& schedule = *spec.mutable_train()->mutable_schedule();
  schedule.set_name(job::Schedule::NAME_PLATEAU);
  schedule.set_gamma(0.5);
  schedule.set_patience(2);
  schedule.set_threshold(0.02);
  schedule.set_cooldown(2);
  schedule.set_min_lr(0.01);
  spec.mutable_eval()->set_metric(job::Eval::METRIC_LOSS);
  spec.mutable_eval()->set_better(job::Eval::BETTER_LOWER);
  const std::vector<double> by_loss =
      RatesBehind(spec, {3,    2.9, 2.95, 2.89, 2.88, 2.5, 2.4, 2.41, 2.39, 2.38, 2.37, 2.36,
                         2.39, 2.5, 2.1,  2.2,  2.2,  2.2, 2.2, 2.2,  2.2,  2.2,  2.2,  2.2});
  schedule.set_gamma(0.1);
  schedule.set_patience(0);
  schedule.set_threshold(1e-4);
  schedule.set_cooldown(0);
  schedule.set_min_lr(0);
  spec.mutable_eval()->set_metric(job::Eval::METRIC_ACCURACY);
  spec.mutable_eval()->set_better(job::Eval::BETTER_HIGHER);
  const std::vector<double> by_accuracy =
      RatesBehind(spec, {0.25, 0.25, 0.5, 0.5, 0.5, 0.75, 0.75, 0.625, 0.8125, 0.8125});

  for (const auto& [name, rates] : {std::pair{"plateau_loss", by_loss}, std::pair{"plateau_accuracy", by_accuracy}}) {
    const std::vector<double> expected = GoldenRates(name);
    REQUIRE(expected.size() == rates.size());
    for (size_t i = 0; i < rates.size(); ++i) {
      CAPTURE(name, i);
      CHECK(rates[i] == Approx(expected[i]).epsilon(1e-12));
    }
  }
}

TEST_CASE("training policy: a rate that was cut stays when another metric decides", "[training]") {
  const EvaluationRule rule{.id = 1, .metric = Metric::kLoss, .plateau = {.cuts = true}};
  const EvaluationSums sums{.loss = 1, .denominator = 1};
  const EvaluationLedger cut = Judge(rule, Judge(rule, {}, 10, sums), 20, sums);
  REQUIRE(cut.rate_cuts == 1);

  const EvaluationRule other{.id = 2, .metric = Metric::kAccuracy, .plateau = {.cuts = true}};
  CHECK(Judge(other, cut, 30, sums).rate_cuts == 1);
}

TEST_CASE("training policy: what a replica is made with is the same after the job was written and read", "[training]") {
  JobSpec spec = Job("10ep", "10m");
  spec.mutable_data()->mutable_eval()->set_sha256(std::string(64, 'a'));
  spec.mutable_eval()->mutable_sample()->set_prompt("In the beginning\n");
  spec.mutable_eval()->mutable_sample()->set_bytes(20);
  spec.mutable_eval()->mutable_sample()->set_temperature(0.7);
  const std::string made = MadeWithSettings(spec);
  const auto read = ParseJob(ResolvedYaml(spec), "/job.yaml");
  INFO(read.status());
  REQUIRE(read.ok());
  CHECK(MadeWithSettings(*read) == made);

  spec.mutable_eval()->mutable_early_stop()->set_patience(3);
  spec.add_hooks()->set_stop(true);
  CHECK(MadeWithSettings(spec) == made);
  JobSpec traced = spec;
  traced.mutable_hooks(0)->set_profile(3);
  CHECK(MadeWithSettings(traced) != made);
  spec.mutable_eval()->set_weights(job::Eval::WEIGHTS_EMA);
  CHECK(MadeWithSettings(spec) != made);
  spec.mutable_data()->clear_eval();
  CHECK(MadeWithSettings(spec) != made);
}

TEST_CASE("training policy: values of another metric, direction or data are not compared", "[training]") {
  JobSpec spec = Job("10ep", "10m");
  spec.mutable_checkpoint()->set_keep_best(true);
  const EvaluationRule rule = MakeTrainingPolicy(spec, kFacts)->evaluation;
  CHECK(rule.metric == Metric::kAccuracy);
  CHECK(rule.higher_is_better);
  CHECK(rule.keep_best);
  CHECK(rule.patience == 0);

  spec.mutable_eval()->mutable_early_stop()->set_patience(3);
  CHECK(MakeTrainingPolicy(spec, kFacts)->evaluation.id == rule.id);
  CHECK(MakeTrainingPolicy(spec, kFacts)->evaluation.patience == 3);
  DataFacts other = kFacts;
  other.eval_sha256 = "other";
  CHECK(MakeTrainingPolicy(spec, other)->evaluation.id != rule.id);
  // Without keep_best nothing was saved that a later `best` could name.
  spec.mutable_checkpoint()->set_keep_best(false);
  CHECK(MakeTrainingPolicy(spec, kFacts)->evaluation.id != rule.id);
  spec.mutable_checkpoint()->set_keep_best(true);
  spec.mutable_eval()->set_metric(job::Eval::METRIC_PERPLEXITY);
  CHECK(MakeTrainingPolicy(spec, kFacts)->evaluation.id != rule.id);
}

TEST_CASE("training policy: hooks stop the job at steps that follow from it alone", "[training][hooks]") {
  JobSpec spec = Job("10ep", "10m");
  const auto add = [&] {
    job::Hook* hook = spec.add_hooks();
    hook->set_stop(true);
    return hook;
  };
  add()->set_step(33);
  add()->mutable_every()->set_milli_epochs(1000);
  add()->set_on(job::Hook::ON_EVALUATION);
  add()->set_on(job::Hook::ON_NAN);                         // nobody knows when
  add()->mutable_every()->mutable_time()->set_seconds(30);  // likewise
  add()->set_step(44);
  spec.mutable_hooks(5)->set_stop(false);

  const auto policy = MakeTrainingPolicy(spec, kFacts);

  REQUIRE(policy.ok());
  CHECK(policy->stops ==
        std::vector<StopRule>{{.step = 33}, {.every = policy->eval_every_steps}, {.on_evaluation = true}});
  CHECK(StopsAt(*policy, 33));
  CHECK(StopsAt(*policy, 2 * policy->eval_every_steps));
  CHECK_FALSE(StopsAt(*policy, 44));
}

}  // namespace
}  // namespace lockstep
