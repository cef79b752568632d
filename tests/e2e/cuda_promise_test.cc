// The promise on GPUs, by host execution: the processes are those of a job on GPUs, with the library that runs the same
// kernels on the host. Device memory that the host cannot touch, snapshots, sums between the processes' devices, kills.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

constexpr char kLibrary[] = "worker/cuda_library/liblockstep_cuda_on_host.so";

std::vector<std::string> CudaSettings(const std::string& model, int batch, int steps,
                                      const std::string& precision = "fp32") {
  const std::string file = std::filesystem::absolute(absl::StrCat("tests/conformance/pytorch/import/", model)).string();
  std::vector<std::string> settings = {"model.builtin=null",
                                       absl::StrCat("model.onnx=", file, ".onnx"),
                                       "data.normalize=null",
                                       absl::StrCat("data.train.inputs=", file, ".inputs.npy"),
                                       absl::StrCat("data.train.labels=", file, ".labels.npy"),
                                       absl::StrCat("train.global_batch_size=", batch),
                                       absl::StrCat("train.duration=", steps, "steps"),
                                       "train.logical_shards=4",
                                       "train.optimizer.lr=0.01",
                                       "checkpoint.every=3steps",
                                       absl::StrCat("train.precision=", precision),
                                       "resources.device=cuda"};
  return settings;
}

void UseHostExecution() { setenv("LOCKSTEP_CUDA_LIBRARY", std::filesystem::absolute(kLibrary).c_str(), 1); }

TEST_CASE("promise: devices whose memory is their own keep it with workers killed and a chief that begins again",
          "[e2e][cuda]") {
  UseHostExecution();
  // Under the checker of host execution, so models are small.
  const auto [model, batch, steps, precision] =
      GENERATE(std::tuple("llama", 4, 6, "bf16"), std::tuple("cnn", 16, 16, "fp32"));
  CAPTURE(model, precision);
  const std::vector<std::string> settings = CudaSettings(model, batch, steps, precision);
  LocalJob undisturbed(absl::StrCat("undisturbed.", model), kJob, settings);
  undisturbed.RunUndisturbed(1);

  LocalJob job(absl::StrCat("killed.", model), kJob, settings);
  job.Override("cluster.workers=3:3");  // the others wait for the one that comes back
  job.StartChief(3);
  for (int i = 0; i < 3; ++i) job.StartWorker(i);
  job.WaitForStep(1);
  job.Kill("worker-1");
  job.StartWorker(1);
  job.WaitForStatus("a save in the middle, and the killed worker among the others", [&](const proto::StatusReply& s) {
    return s.published_step() >= 3 && absl::StrContains(job.LogOf("worker-1"), "received the state of step ");
  });
  job.KillEverything();
  job.Override("cluster.workers=2:2");
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1"}) CHECK(job.WaitForEnd(worker) == Ended{});

  CHECK(job.Digest() == undisturbed.Digest());
  job.ReplayRecords();
  // The one that came back received the state of those that lived; then both restored a checkpoint.
  CHECK(absl::StrContains(job.LogOf("worker-1"), "received the state of step "));
  CHECK(absl::StrContains(job.LogOf("worker-1"), " from device to device"));
  for (const char* worker : {"worker-0", "worker-1"}) {
    CHECK(absl::StrContains(job.LogOf(worker), ", shares went from device to device"));
  }
}

TEST_CASE("promise: two workers under limits share one GPU, and a limit that is too low is refused with what it leaves",
          "[e2e][cuda]") {
  UseHostExecution();
  const std::string shared = absl::StrCat(std::getenv("TEST_TMPDIR"), "/gpu");
  setenv("LOCKSTEP_HOST_GPU_FILE", shared.c_str(), 1);
  setenv("LOCKSTEP_HOST_GPU_BYTES", "67108864", 1);
  setenv("LOCKSTEP_HOST_CONTEXT_BYTES", "4194304", 1);
  std::vector<std::string> settings = CudaSettings("cnn", 16, 8);
  settings.push_back("resources.gpu_memory=0.45");
  LocalJob job("shared", kJob, settings);
  job.RunUndisturbed(2);

  settings.back() = "resources.gpu_memory=4196000B";
  std::vector<std::string> words = {"check", kJob, "--plan"};
  for (const std::string& set : settings) words.insert(words.end(), {"--set", set});
  std::string output;
  CHECK(LocalJob::RunCommand(words, &output) != Ended{});
  INFO(output);
  CHECK(absl::StrContains(output, "leaves it 1696 beside what CUDA takes itself"));
  for (const char* name : {"LOCKSTEP_HOST_GPU_FILE", "LOCKSTEP_HOST_GPU_BYTES", "LOCKSTEP_HOST_CONTEXT_BYTES"}) {
    unsetenv(name);
  }
}

TEST_CASE("promise: a worker that is parked gives its GPU's memory back, and goes on when the others are there again",
          "[e2e][cuda]") {
  UseHostExecution();
  const std::vector<std::string> settings = CudaSettings("cnn", 16, 8);
  LocalJob undisturbed("not.parked", kJob, settings);
  undisturbed.RunUndisturbed(1);

  LocalJob job("parked", kJob, settings);
  job.Override("cluster.workers=2:2");
  job.StartChief(2);
  for (int i = 0; i < 2; ++i) job.StartWorker(i);
  job.WaitForStep(2);
  job.Kill("worker-1");
  job.WaitForStatus("memory given back", [&](const proto::StatusReply&) {
    return absl::StrContains(job.LogOf("worker-0"), "bytes of its GPU's memory: nothing to compute");
  });
  job.StartWorker(1);

  for (const char* process : {"worker-0", "worker-1", "chief"}) CHECK(job.WaitForEnd(process) == Ended{});
  CHECK(absl::StrContains(job.LogOf("worker-0"), "bytes of its GPU's memory again"));
  CHECK(job.Digest() == undisturbed.Digest());
  job.ReplayRecords();
}

TEST_CASE("promise: a worker without a GPU is refused in a job of GPUs, which goes on", "[e2e][cuda]") {
  UseHostExecution();
  LocalJob job("mixed", kJob, CudaSettings("cnn", 16, 40));
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(2);

  setenv("LOCKSTEP_CUDA_LIBRARY", "/no/such/library.so", 1);
  job.StartWorker(1);

  CHECK(job.WaitForEnd("worker-1").code == 78);
  CHECK(absl::StrContains(job.LogOf("worker-1"), "LOCKSTEP_CUDA_LIBRARY"));
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("chief") == Ended{});
}

}  // namespace
}  // namespace lockstep::e2e
