// What `reduction: fast` keeps of the promise, on real processes: every step is made once, no committed one is lost,
// and the replicas hold the same bits as each other. What it gives up, the same bits for any number of workers, is not
// asked.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/events/event_reading.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

constexpr char kHostLibrary[] = "worker/cuda_library/liblockstep_cuda_on_host.so";

std::vector<std::string> OnCpu(int steps) {
  return {"resources.device=cpu", "train.reduction=fast", absl::StrCat("train.duration=", steps, "steps"),
          "checkpoint.every=50steps"};
}

// Longer than the test takes to look, kill and start again.
constexpr int kCpuSteps = 1000;

std::vector<std::string> OnGpu(int steps) {
  const std::string file = std::filesystem::absolute("tests/conformance/pytorch/import/cnn").string();
  return {"model.builtin=null",
          absl::StrCat("model.onnx=", file, ".onnx"),
          "data.normalize=null",
          absl::StrCat("data.train.inputs=", file, ".inputs.npy"),
          absl::StrCat("data.train.labels=", file, ".labels.npy"),
          "train.global_batch_size=16",
          "train.logical_shards=4",
          "train.optimizer.lr=0.01",
          absl::StrCat("train.duration=", steps, "steps"),
          "train.reduction=fast",
          "checkpoint.every=5steps",
          "resources.device=cuda"};
}

// How often the chief wrote the loss of each step down, over all of its lives.
std::map<int64_t, int> StepsTold(const LocalJob& job) {
  std::map<int64_t, int> told;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat(job.directory(), "/events"))) {
    std::ifstream in(entry.path(), std::ios::binary);
    for (const auto& event : chief::ReadEvents(std::string(std::istreambuf_iterator<char>(in), {}))) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() == "loss") ++told[event.step()];
      }
    }
  }
  return told;
}

TEST_CASE("promise: fast sums keep every step and equal replicas with workers killed", "[e2e]") {
  const bool gpu = GENERATE(false, true);
  CAPTURE(gpu);
  setenv("LOCKSTEP_CUDA_LIBRARY", std::filesystem::absolute(kHostLibrary).c_str(), 1);
  const int steps = gpu ? 20 : kCpuSteps;
  LocalJob job(gpu ? "fast.gpu" : "fast.cpu", kJob, gpu ? OnGpu(steps) : OnCpu(steps));
  job.StartChief(3);
  job.StartWorker(0);
  job.WaitForStatus("a worker", [](const proto::StatusReply& s) { return s.workers_size() > 0; });
  job.StartWorker(1);
  job.StartWorker(2);

  // Who came first is rank 0 and stays: it alone tells the losses.
  for (const auto& [at, victim] : {std::pair(steps / 5, 1), {steps / 2, 2}}) {
    job.WaitForStep(static_cast<uint64_t>(at));
    job.Kill(absl::StrCat("worker-", victim));
    job.StartWorker(victim);
  }

  // The chief compares the replicas' digests every 16 steps and at every save: one that differs would end it with 70.
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1", "worker-2"}) CHECK(job.WaitForEnd(worker) == Ended{});
  const std::map<int64_t, int> told = StepsTold(job);
  // The loss of a step that rank 0 received from another survivor is told by nobody.
  CHECK(told.size() >= static_cast<size_t>(steps - 2));
  CHECK(told.rbegin()->first == steps);
  for (const auto& [step, times] : told) {
    CAPTURE(step);
    CHECK(times == 1);
  }
  CHECK(job.Stats().job().losses() == 2);
  CHECK(job.Stats().job().crashes() == 0);
  job.ReplayRecords();
}

TEST_CASE("promise: fast sums go on from the newest state when the chief is killed, and from the save without it",
          "[e2e]") {
  LocalJob job("fast.chief", kJob, OnCpu(kCpuSteps));
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(60);

  job.Kill("chief");
  CHECK(job.worker(0).Running());
  job.Kill("worker-1");
  job.StartChief(2);
  job.StartWorker(1);
  std::optional<uint64_t> published;  // before the new generation: the chief before, or what a worker still had to send
  job.WaitForStatus("a save by the new generation, which goes on from the newest state",
                    [&](const proto::StatusReply& s) {
                      if (!absl::StrContains(job.LogOf("chief"), "from the state of worker-0")) return false;
                      if (!published.has_value()) published = s.published_step();
                      return s.published_step() > *published;
                    });
  job.KillEverything();
  job.StartChief(1);
  job.StartWorker(0);

  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(StepsTold(job).rbegin()->first == kCpuSteps);
  job.ReplayRecords();
}

}  // namespace
}  // namespace lockstep::e2e
