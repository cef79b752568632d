// The promise for what evaluations decide, on real processes: the same last step and the same best state whatever is
// killed. Digests are compared between runs of this machine, never with a constant.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/e2e/local_job.h"
#include "tests/e2e/small_onnx.h"

namespace lockstep::e2e {
namespace {

// No loss falls by 10 between two evaluations: the first sets the mark, and three later the patience is at its end.
constexpr uint64_t kStepsInAll = 80;

constexpr char kEvalData[] =
    "data.eval={inputs: /usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz, labels: "
    "/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz}";

std::vector<std::string> EvaluationSettings() {
  return {"train.duration=200steps", kEvalData,
          "eval={every: 20steps, metric: loss, early_stop: {patience: 3, min_delta: 10}}",
          "checkpoint={every: 30steps, keep_latest: 1, keep_best: true}"};
}

std::string BestOf(const LocalJob& job) {
  std::ifstream file(absl::StrCat(job.directory(), "/best"));
  return {std::istreambuf_iterator<char>(file), {}};
}

// "step-000000060\n" as a number.
int64_t StepOf(const std::string& name) { return std::stoll(name.substr(5)); }

}  // namespace

TEST_CASE("promise: evaluations end the job at the same step with the same best state", "[e2e]") {
  LocalJob alone("alone", kJob, EvaluationSettings());
  alone.RunUndisturbed(1);
  const std::string best = BestOf(alone);
  REQUIRE_FALSE(best.empty());
  CHECK(alone.LogOf("chief").find(absl::StrCat("done at step ", kStepsInAll, ", loss no longer improves")) !=
        std::string::npos);
  CHECK(alone.LogOf("chief").find("best: loss") != std::string::npos);

  LocalJob job("disturbed", kJob, EvaluationSettings());
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  // A worker in an evaluation or right before it, the chief where a best state waits for it, then everything.
  job.WaitForStep(19);
  job.Kill("worker-1");
  job.StartWorker(1);
  job.WaitForStep(40);
  job.Kill("chief");
  job.StartChief(2);
  job.WaitForStep(50);
  job.KillEverything();
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("worker-1") == Ended{});

  CHECK(BestOf(job) == best);
  CHECK(job.Digest(kStepsInAll) == alone.Digest(kStepsInAll));
  CHECK(job.Digest(StepOf(best)) == alone.Digest(StepOf(best)));
  job.ReplayRecords();

  // A finished job stays finished.
  job.StartChief(2);
  CHECK(job.WaitForEnd("chief") == Ended{});
}

TEST_CASE("promise: an evaluation that compares all samples of a pass is the same, whoever is killed", "[e2e]") {
  const std::string model = (std::filesystem::temp_directory_path() / absl::StrCat("contrast.", getpid())).string();
  WriteContrast(model);
  // 10,000 samples in passes of 14: the last one has 4.
  const std::vector<std::string> settings = {
      "model.builtin=null",
      absl::StrCat("model.onnx=", model),
      "model.loss=output:cost",
      "data.train.labels=null",
      "data.eval={inputs: /usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz}",
      "train.global_batch_size=56",
      "train.duration=200steps",
      "train.optimizer.lr=0.001",
      "eval={every: 20steps, metric: loss, early_stop: {patience: 3, min_delta: 10}}",
      "checkpoint={every: 30steps, keep_latest: 1, keep_best: true}"};
  LocalJob alone("contrast alone", kJob, settings);
  alone.RunUndisturbed(1);
  const std::string best = BestOf(alone);
  REQUIRE_FALSE(best.empty());

  LocalJob job("contrast disturbed", kJob, settings);
  job.StartChief(3);
  for (int i = 0; i < 3; ++i) job.StartWorker(i);
  job.WaitForStep(20);
  job.Kill("worker-1");
  job.StartWorker(1);
  job.WaitForStep(45);
  job.KillEverything();
  job.StartChief(3);
  for (int i = 0; i < 3; ++i) job.StartWorker(i);
  CHECK(job.WaitForEnd("chief") == Ended{});

  CHECK(BestOf(job) == best);
  CHECK(job.Digest(kStepsInAll) == alone.Digest(kStepsInAll));
  job.ReplayRecords();
  std::filesystem::remove(model);
}

TEST_CASE("promise: a learning rate that evaluations cut is the same at every step, whoever is killed", "[e2e]") {
  // A loss that does not fall by a half cuts the rate.
  const std::vector<std::string> settings = {
      "train.duration=120steps",
      kEvalData,
      "eval={every: 20steps, metric: loss}",
      "train.schedule={name: plateau, gamma: 0.3, patience: 0, threshold: 0.5, cooldown: 1}",
      "train.optimizer.groups=[{parameters: \"*.bias\", lr: 0.02}, {parameters: \"conv*\", weight_decay: 0.01}]",
      "checkpoint={every: 30steps}"};
  LocalJob alone("alone_plateau", kJob, settings);
  alone.RunUndisturbed(1);
  CHECK_THAT(alone.LogOf("chief"),
             Catch::Contains("learning rate 0.015 from step ") && Catch::Contains("learning rate 0.0045 from step "));

  LocalJob job("disturbed_plateau", kJob, settings);
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(39);
  job.Kill("worker-1");
  job.StartWorker(1);
  job.WaitForStep(60);
  job.Kill("chief");
  job.StartChief(2);
  job.WaitForStep(75);
  job.KillEverything();
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("worker-1") == Ended{});

  CHECK(job.Digest() == alone.Digest());
}

TEST_CASE("promise: a job that is given an evaluation while its chief is away keeps what its workers hold", "[e2e]") {
  const std::vector<std::string> settings = {"train.duration=1500steps", "checkpoint={every: 5000steps}"};
  LocalJob alone("alone_without", kJob, settings);
  alone.RunUndisturbed(1);

  LocalJob job("given_evaluation", kJob, settings);
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(10);
  job.Kill("chief");
  job.Override(kEvalData);
  job.Override("eval={every: 400steps}");
  job.StartChief(2);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("worker-1") == Ended{});

  CHECK(job.Digest() == alone.Digest());
  CHECK(job.LogOf("chief").find("evaluated step 1500") != std::string::npos);
  CHECK(job.LogOf("chief").find("from the state of") != std::string::npos);
}

}  // namespace lockstep::e2e
