// The promise, on real processes: whatever is killed, and however many workers there are, the state at the last step
// has the same digest. Digests are compared between runs of this machine, never with a constant.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

// The last wait of a test leaves a fifth of them, which take far longer than a look at the step.
constexpr uint64_t kSteps = 600;
constexpr int kPreempted = 75;

std::vector<std::string> PromiseSettings() {
  return {absl::StrCat("train.duration=", kSteps, "steps"), "checkpoint.every=50steps", "train.ema.decay=0.99"};
}

// What every disturbed run must end with: computed once, by one worker that nobody disturbs.
const std::string& UndisturbedDigest() {
  static const std::string digest = [] {
    LocalJob job("undisturbed", kJob, PromiseSettings());
    job.RunUndisturbed(1);
    return job.Digest();
  }();
  return digest;
}

// The step of the newest checkpoint.
uint64_t NewestCheckpoint(const LocalJob& job) {
  uint64_t newest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(job.directory() + "/checkpoints")) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "step-")) newest = std::max<uint64_t>(newest, std::stoull(name.substr(5)));
  }
  return newest;
}

void WaitForSuccess(LocalJob& job, int workers) {
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (int i = 0; i < workers; ++i) CHECK(job.WaitForEnd(absl::StrCat("worker-", i)) == Ended{});
}

TEST_CASE("promise: 1, 2, 3 and 4 workers end with the same bits", "[e2e]") {
  for (int workers = 2; workers <= 4; ++workers) {
    CAPTURE(workers);
    LocalJob job(absl::StrCat("workers", workers), kJob, PromiseSettings());
    job.RunUndisturbed(workers);
    CHECK(job.Digest() == UndisturbedDigest());
    CHECK(job.Stats().workers_size() == workers);
    CHECK(job.ReplayRecords() == workers + 1);
  }
}

TEST_CASE("promise: a worker killed every 120 steps changes nothing", "[e2e]") {
  LocalJob job("killed", kJob, PromiseSettings());
  job.StartChief(3);
  for (int i = 0; i < 3; ++i) job.StartWorker(i);

  int kills = 0;
  for (uint64_t step = 120; step < kSteps; step += 120) {
    job.WaitForStep(step);
    const int victim = kills++ % 3;
    job.Kill(absl::StrCat("worker-", victim));
    job.StartWorker(victim);
  }
  WaitForSuccess(job, 3);

  CHECK(kills == 4);
  CHECK(job.Stats().job().losses() == kills);
  CHECK(job.Stats().job().crashes() == 0);
  CHECK(job.Digest() == UndisturbedDigest());
  CHECK(job.ReplayRecords() == 4 + kills);
}

TEST_CASE("promise: a worker that is asked to leave goes at a boundary and nothing changes", "[e2e]") {
  LocalJob job("preempted", kJob, PromiseSettings());
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);

  job.WaitForStep(60);
  job.worker(1).Signal(SIGTERM);
  CHECK(job.WaitForEnd("worker-1") == Ended{kPreempted, 0});
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  CHECK(job.Stats().job().preemptions() == 1);
  CHECK(job.Stats().job().losses() == 0);
  CHECK(job.Digest() == UndisturbedDigest());
  job.ReplayRecords();
}

TEST_CASE("promise: everything killed at once goes on from the checkpoint", "[e2e]") {
  LocalJob job("tree", kJob, PromiseSettings());
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStatus("a save in the middle", [](const proto::StatusReply& s) { return s.published_step() >= 100; });

  job.KillEverything();
  const uint64_t saved = NewestCheckpoint(job);
  CHECK(saved >= 100);
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  WaitForSuccess(job, 2);

  CHECK_THAT(job.LogOf("chief"), Catch::Contains(absl::StrCat(", from step ", saved, " (")));
  CHECK(job.Digest() == UndisturbedDigest());
  job.ReplayRecords();
}

TEST_CASE("promise: a killed chief comes back while the workers live, and they never stop", "[e2e]") {
  LocalJob job("chief", kJob, PromiseSettings());
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(60);

  job.Kill("chief");
  CHECK(job.worker(0).Running());
  CHECK(job.worker(1).Running());
  job.StartChief(2);
  WaitForSuccess(job, 2);

  CHECK(job.Stats().job().losses() == 0);
  CHECK(job.Digest() == UndisturbedDigest());
  job.ReplayRecords();
}

TEST_CASE("promise: lockstep run keeps it with a worker killed every 40 steps, and counts the kills", "[e2e]") {
  LocalJob job("run", kJob, {});
  std::vector<std::string> words = {"run",    kJob, "--workers", "3", "--dir", job.directory(), "--kill-worker-every",
                                    "40steps"};
  for (const char* const set : {kInputs, kLabels}) words.insert(words.end(), {"--set", set});
  for (const std::string& set : PromiseSettings()) words.insert(words.end(), {"--set", set});

  std::string output;
  CHECK(LocalJob::RunCommand(words, &output) == Ended{});

  INFO(output);
  CHECK(output.find("workers on purpose") != std::string::npos);
  CHECK(output.find("killed 0 workers") == std::string::npos);
  CHECK(job.Digest() == UndisturbedDigest());
}

}  // namespace
}  // namespace lockstep::e2e
