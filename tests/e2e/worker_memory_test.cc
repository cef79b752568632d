// The memory that `check` predicts against what a worker takes: real workers of real jobs, whose peak is the kernel's.
//
// VmHWM counts resident pages, whoever asked for them: code, libraries, data and connections too. It needs no knowledge
// of who allocates, so that what the forecast forgot shows. A row per model is printed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(LOCKSTEP_THREAD_SANITIZER)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

namespace fs = std::filesystem;

constexpr double kTolerance = 0.05;
// How much of programs and libraries lies in memory is the kernel's choice, 40 MiB here: around a page that is touched
// it maps what it has of the file. Machines differ by so many MiB, a twentieth of the smallest models and more.
constexpr double kMappedMiB = 4;

// A data file of zeros: `type` as NumPy writes it, "<f4" or "<i8".
struct Zeros {
  std::string type;
  std::vector<int> sample;
};

struct Case {
  std::string name;
  std::string model;  // of the section of that name, without the loss
  std::string train;  // likewise, without the duration
  Zeros inputs;
  Zeros labels;
  bool evaluates = false;
  int samples = 64;
  int workers = 1;
};

std::string WriteZeros(const std::string& name, int samples, const Zeros& zeros) {
  std::vector<int> shape = {samples};
  shape.insert(shape.end(), zeros.sample.begin(), zeros.sample.end());
  size_t bytes = static_cast<size_t>(zeros.type.back() - '0');
  for (const int d : shape) bytes *= static_cast<size_t>(d);
  const std::string header = absl::StrCat("{'descr': '", zeros.type, "', 'fortran_order': False, 'shape': (",
                                          absl::StrJoin(shape, ", "), shape.size() == 1 ? ",)}\n" : ")}\n");
  const std::string path = TempPath(name);
  Write(path, absl::StrCat(std::string("\x93NUMPY\1\0", 8), std::string(1, static_cast<char>(header.size())),
                           std::string(1, '\0'), header, std::string(bytes, '\0')));
  return path;
}

std::string WriteJob(const Case& c) {
  const std::string files = absl::StrCat("{inputs: ", WriteZeros(c.name + ".inputs.npy", c.samples, c.inputs),
                                         ", labels: ", WriteZeros(c.name + ".labels.npy", c.samples, c.labels), "}");
  const std::string path = TempPath(c.name + ".yaml");
  Write(path,
        absl::StrCat("name: memory\nmodel: {", c.model, ", loss: softmax_cross_entropy}\ntrain: {duration: 9steps, ",
                     c.train, "}\ncheckpoint: {every: 4steps}\ndata:\n  train: ", files,
                     c.evaluates ? absl::StrCat("\n  eval: ", files) : "", "\n"));
  return path;
}

// In MiB, as `check` says it in the line of `memory`.
double Predicted(const std::string& job) {
  const Result check = Run({"check", job});
  INFO(check.output);
  REQUIRE(check.code == kExitDone);
  const size_t end = check.output.find(" MiB per worker");
  REQUIRE(end != std::string::npos);
  const size_t begin = check.output.rfind(' ', end - 1) + 1;
  double mib = 0;
  REQUIRE(absl::SimpleAtod(check.output.substr(begin, end - begin), &mib));
  return mib;
}

// VmHWM in MiB; 0 when the process is gone.
double PeakNow(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return static_cast<double>(std::atol(line.c_str() + 6)) / 1024;
  }
  return 0;
}

// Runs the job to its end: the last look at the first worker's peak before it is gone.
double Peak(const Case& c, const std::string& path) {
  LocalJob job("memory." + c.name, path, {});
  job.StartChief(c.workers);
  for (int i = 0; i < c.workers; ++i) job.StartWorker(i);
  double peak = 0;
  while (!job.worker(0).Wait(absl::Milliseconds(1)).has_value()) peak = std::max(peak, PeakNow(job.worker(0).pid()));
  INFO(job.LogOf("worker-0"));
  for (int i = 0; i < c.workers; ++i) CHECK(job.WaitForEnd(absl::StrCat("worker-", i)) == Ended{});
  CHECK(job.WaitForEnd("chief") == Ended{});
  return peak;
}

const Zeros kClass{"<i8", {}};

std::vector<Case> Cases() {
  const std::string gpt2 = "builtin: {name: gpt2, layers: 4, heads: 4, width: 128, context: 128, vocabulary: 256}";
  const std::string imported = fs::absolute("tests/conformance/pytorch/import/resnet18.onnx").string();
  const std::string sgd = "optimizer: {lr: 0.1, momentum: 0.9}";
  const std::string adamw = "optimizer: {name: adamw, lr: 1e-3}";
  const Zeros text{"<i8", {128}};
  const Zeros small_image{"<f4", {3, 32, 32}};
  return {
      Case{"lenet", "builtin: {name: lenet, classes: 10}", "global_batch_size: 64, logical_shards: 4, " + sgd,
           Zeros{"<f4", {1, 28, 28}}, kClass, /*evaluates=*/true},
      Case{"data", "builtin: {name: mlp, classes: 10, hidden: [64]}",
           "global_batch_size: 64, logical_shards: 4, " + sgd, Zeros{"<f4", {1024}}, kClass, /*evaluates=*/true,
           /*samples=*/20000},
      Case{"mlp", "builtin: {name: mlp, classes: 10, hidden: [4096, 4096]}",
           "global_batch_size: 32, logical_shards: 2, micro_batch: 4, optimizer: {lr: 0.1}", Zeros{"<f4", {512}},
           kClass},
      Case{"gpt2", gpt2, "global_batch_size: 16, logical_shards: 1, " + adamw, text, text},
      Case{"two workers", gpt2, "global_batch_size: 16, logical_shards: 2, " + adamw, text, text, /*evaluates=*/false,
           /*samples=*/64, /*workers=*/2},
      Case{"gpt2 in bf16", gpt2, "global_batch_size: 16, logical_shards: 1, precision: bf16, " + adamw, text, text},
      Case{"resnet18", "builtin: {name: resnet18, classes: 10, small_images: true}",
           "global_batch_size: 32, logical_shards: 1, " + sgd, small_image, kClass, /*evaluates=*/true},
      Case{"resnet50", "builtin: {name: resnet50, classes: 100}", "global_batch_size: 4, logical_shards: 2, " + sgd,
           Zeros{"<f4", {3, 64, 64}}, kClass},
      Case{"vit", "builtin: {name: vit, classes: 10, patch: 4, layers: 4, heads: 4, width: 192}",
           "global_batch_size: 16, logical_shards: 1, " + adamw, small_image, kClass},
      Case{"bert", "builtin: {name: bert, classes: 2, layers: 2, heads: 4, width: 256, context: 64, vocabulary: 1000}",
           "global_batch_size: 16, logical_shards: 4, ema: {decay: 0.9}, " + adamw, Zeros{"<i8", {64}}, kClass},
      Case{"imported", "onnx: " + imported, "global_batch_size: 32, logical_shards: 2, " + sgd, small_image, kClass}};
}

TEST_CASE("memory: a worker's peak is what check predicts within 5% and 4 MiB", "[e2e]") {
  if (kSanitized) {
    std::cout << "SKIPPED: a sanitizer's own memory is not forecast\n";
    return;
  }
  std::printf("%-14s %14s %10s %7s\n", "model", "predicted MiB", "peak MiB", "ratio");
  for (const Case& c : Cases()) {
    INFO(c.name);
    const std::string job = WriteJob(c);
    const double predicted = Predicted(job);

    const double peak = Peak(c, job);

    std::printf("%-14s %14.1f %10.1f %7.3f\n", c.name.c_str(), predicted, peak, predicted / peak);
    std::fflush(stdout);
    CHECK(std::abs(predicted - peak) <= kTolerance * peak + kMappedMiB);
  }
}

TEST_CASE("memory: a worker on a machine without NVIDIA's driver loads none of CUDA's libraries", "[e2e]") {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    std::cout << "SKIPPED: this machine has NVIDIA's driver\n";
    return;
  }
  LocalJob job("libraries", kJob, Settings("100000steps"));
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(1);

  const std::string maps = Read(absl::StrCat("/proc/", job.worker(0).pid(), "/maps"));

  CHECK_THAT(maps, Catch::Contains("libgrpc") && !Catch::Contains("libcublas") && !Catch::Contains("libnvrtc"));
}

}  // namespace
}  // namespace lockstep::e2e
