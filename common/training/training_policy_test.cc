#include "common/training/training_policy.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/job/extent.h"

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
