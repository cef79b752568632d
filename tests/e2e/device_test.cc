// Which device computes a job, with real processes and invented GPUs: spread over them, refused without them.
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;

// Small enough for the reference device, which an invented GPU computes with.
Words Small(const std::string& duration) {
  Words sets = Settings(duration, "5steps");
  sets.insert(sets.end(), {"model.builtin={name: mlp, hidden: [16]}", "train.global_batch_size=16"});
  return sets;
}

void WithGpus(bool gpus) {
  setenv("LOCKSTEP_CUDA_LIBRARY", gpus ? "worker/fakes/fake_cuda_library.so" : "/nowhere/liblockstep_cuda.so", 1);
}

std::string LogOf(const std::string& directory, const std::string& worker) {
  return Read(directory + "/logs/" + worker + ".log");
}

TEST_CASE("device: check says what the machine has, or in one line why there is no GPU to use", "[e2e]") {
  WithGpus(true);
  const Result found = Run({"check", "--machine"});
  WithGpus(false);
  const Result none = Run({"check", "--machine"});

  INFO(found.output << none.output);
  CHECK(found.code == kExitDone);
  CHECK_THAT(found.output, Contains("ok    driver") && Contains("ok    toolkit") && Contains("ok    gpu 0") &&
                               Contains("ok    gpu 1") && Contains("warn  nccl"));
  CHECK(none.code == kExitDone);
  CHECK_THAT(none.output, Contains("warn  gpu         none: LOCKSTEP_CUDA_LIBRARY: /nowhere/liblockstep_cuda.so"));
  CHECK_THAT(Run({"check", kJob}, Settings()).output, Contains("ok    gpu         none: "));
  CHECK(Run({"check"}).code == kExitUsage);
  CHECK(Run({"check", "--machine", "--device", "gpu"}).code == kExitUsage);
}

TEST_CASE("device: workers are spread over the GPUs, and the job does not go on without them", "[e2e]") {
  const std::string directory = TempPath("gpus");
  WithGpus(true);
  const Result trained = Run({"run", kJob, "--workers", "2", "--dir", directory}, Small("10steps"));
  INFO(trained.output);
  REQUIRE(trained.code == kExitDone);
  CHECK_THAT(LogOf(directory, "worker-0"), Contains("computes on GPU 0 of 2, Invented GPU"));
  CHECK_THAT(LogOf(directory, "worker-1"), Contains("computes on GPU 1 of 2, Invented GPU"));

  WithGpus(false);
  const Result refused = Run({"run", kJob, "--workers", "2", "--dir", directory}, Small("20steps"));
  INFO(refused.output);
  CHECK(refused.code == kExitBadJob);
  CHECK_THAT(refused.output, Contains("kernel plan is of kind cuda: it is trained on GPUs, and this worker computes on "
                                      "its CPU (LOCKSTEP_CUDA_LIBRARY: /nowhere"));

  WithGpus(true);
  const Result one = Run({"run", kJob, "--workers", "2", "--device", "cuda:1", "--dir", directory}, Small("20steps"));
  INFO(one.output);
  CHECK(one.code == kExitDone);
  CHECK_THAT(LogOf(directory, "worker-0"), Contains("computes on GPU 1 of 2, Invented GPU"));
}

TEST_CASE("device: a machine with GPUs uses its CPU in a job of CPUs, unless that is ruled out", "[e2e]") {
  const std::string directory = TempPath("cpus");
  WithGpus(false);
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", directory}, Small("10steps")).code == kExitDone);
  CHECK_THAT(LogOf(directory, "worker-0"), Contains("computes on the CPU: "));

  WithGpus(true);
  const Result refused = Run({"run", kJob, "--workers", "1", "--device", "cuda", "--dir", directory}, Small("20steps"));
  const Result trained = Run({"run", kJob, "--workers", "1", "--dir", directory}, Small("20steps"));

  INFO(refused.output << trained.output);
  CHECK(refused.code == kExitBadJob);
  CHECK_THAT(refused.output, Contains("of kind cpu, and this worker computes on a GPU (--device cuda keeps it there)"));
  CHECK(trained.code == kExitDone);
  CHECK_THAT(LogOf(directory, "worker-0"), Contains("computes on the CPU: the job's kernel plan is of kind cpu"));
}

TEST_CASE("device: what the job asks for holds against the flag, and a GPU's memory is a limit", "[e2e]") {
  WithGpus(true);
  const auto run = [](const std::string& setting, const std::string& device) {
    Words sets = Small("10steps");
    sets.push_back(setting);
    return Run({"run", kJob, "--workers", "1", "--device", device, "--dir", TempPath("asked." + setting)}, sets);
  };

  const Result no_cpu = run("resources.device=cuda", "cpu");
  const Result no_gpu = run("resources.device=cpu", "cuda:0");
  const Result too_big = run("resources.gpu_memory=10KB", "auto");

  INFO(no_cpu.output << no_gpu.output << too_big.output);
  CHECK(no_cpu.code == kExitBadJob);
  CHECK_THAT(no_cpu.output, Contains("`resources.device: cuda`") && Contains("--device cpu rules them out"));
  CHECK(no_gpu.code == kExitBadJob);
  CHECK_THAT(no_gpu.output, Contains("`resources.device: cpu`") && Contains("started with --device cuda:0"));
  CHECK(too_big.code == kExitBadJob);
  CHECK_THAT(too_big.output, Contains("bytes of its GPU") && Contains("resources.gpu_memory: "));
}

}  // namespace
}  // namespace lockstep::e2e
