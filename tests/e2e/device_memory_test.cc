// Jobs of real processes whose workers compute in memory that the host cannot touch, by work that waits until somebody
// waits for it: the reference device that passes for a GPU. They end with the bits of the reference device itself,
// whatever is killed.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

constexpr uint64_t kStepsOfMemory = 150;

std::vector<std::string> MemorySettings(const std::string& device) {
  return {absl::StrCat("resources.device=", device),
          absl::StrCat("train.duration=", kStepsOfMemory, "steps"),
          "train.global_batch_size=16",
          "train.micro_batch=2",
          "train.clip_norm=1.0",
          "train.ema.decay=0.9",
          "checkpoint.every=10steps",
          "model.builtin.name=mlp"};
}

TEST_CASE("device memory: a job on memory that the host cannot touch ends with the same bits", "[e2e]") {
  LocalJob on_host("host", kJob, MemorySettings("reference"));
  on_host.RunUndisturbed(1);
  setenv("LOCKSTEP_CUDA_LIBRARY", "worker/fakes/fake_cuda_library.so", 1);
  setenv("LOCKSTEP_FAKE_GPUS", "1", 1);

  LocalJob two("two", kJob, MemorySettings("cuda"));
  two.RunUndisturbed(2);
  CHECK(two.Digest() == on_host.Digest());

  // A killed worker comes back and receives the state of the one that lives.
  LocalJob killed("killed", kJob, MemorySettings("cuda"));
  killed.StartChief(2);
  killed.StartWorker(0);
  killed.StartWorker(1);
  killed.WaitForStep(8);
  killed.Kill("worker-0");
  killed.StartWorker(0);
  // Then nobody lives, and both restore a checkpoint.
  killed.WaitForStep(14);
  killed.Kill("worker-0");
  killed.Kill("worker-1");
  killed.StartWorker(0);
  killed.StartWorker(1);
  for (const char* process : {"chief", "worker-0", "worker-1"}) CHECK(killed.WaitForEnd(process) == Ended{});
  CHECK(killed.Digest() == on_host.Digest());
}

}  // namespace
}  // namespace lockstep::e2e
