// The forecast against the memory that a worker's process takes: each in a process of its own, whose peak is compared.
//
// The measure is the kernel's VmHWM: pages, whoever asked for them, code, libraries and data included. It needs no
// knowledge of who allocates, so that what the forecast forgot shows. A row per model is printed. What a worker's
// connections take is not in it: there is no chief.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/serialize.h"
#include "common/job/graph_request.h"
#include "common/status/check.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/data/test_files.h"
#include "worker/snapshot/snapshot_store.h"
#include "worker/step/forecast.h"
#include "worker/step/replica.h"

namespace lockstep::worker {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int64_t kSamples = 64;

struct Case {
  std::string name;
  std::string job;  // sections `model`, `train` and `resources` of a job
  TensorSpec inputs;
  TensorSpec labels;
  bool evaluates = false;
};

struct Measured {
  int64_t forecast = 0;
  int64_t process = 0;  // of that
  int64_t peak = 0;
};

// In bytes: "VmHWM:".
int64_t OfProcess(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(what, 0) == 0) return std::atol(line.c_str() + what.size()) * 1024;
  }
  return 0;
}

std::string NpyOfZeros(const TensorSpec& sample) {
  std::string shape = absl::StrCat("(", kSamples, ",");
  for (const int64_t d : sample.shape) absl::StrAppend(&shape, " ", d, ",");
  const std::string type = sample.dtype == DType::kI64 ? "<i8" : "<f4";
  const auto bytes = static_cast<size_t>(kSamples * NumElements(sample.shape) * DTypeSize(sample.dtype));
  return NpyBytes(absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ")}"),
                  std::string(bytes, '\0'));
}

JobSpec JobOf(const Case& c, const TestFiles& files) {
  const std::string data = absl::StrCat("{inputs: ", files.Write("inputs.npy", NpyOfZeros(c.inputs)),
                                        ", labels: ", files.Write("labels.npy", NpyOfZeros(c.labels)), "}");
  std::string yaml = absl::StrCat("name: memory\n", c.job, "data:\n  train: ", data, "\n");
  if (c.evaluates) absl::StrAppend(&yaml, "  eval: ", data, "\n");
  return ParseJob(yaml, files.directory() + "/job.yaml").value();
}

// In place: initial tensors beside the state would be memory of the test's.
void FillParameters(ReplicaState& state) {
  for (size_t t = 0; t < state.layout().tensors.size(); ++t) {
    if (state.layout().tensors[t].kind != StateKind::kParameter) continue;
    const absl::Span<float> values = state.host().floats(static_cast<int>(t));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.01f * static_cast<float>(static_cast<int>(i % 7) - 3);
  }
}

const TensorSpec kLabel{"labels", DType::kI64, {}};
const Case kLenet{
    "lenet",
    "model: {builtin: {name: lenet, classes: 10}, loss: softmax_cross_entropy}\n"
    "train: {duration: 9steps, global_batch_size: 64, logical_shards: 4, optimizer: {lr: 0.1, momentum: 0.9}}\n",
    {"inputs", DType::kF32, {1, 28, 28}},
    kLabel,
    true};

// Makes the replica and takes two steps with all that a worker has ready: snapshots, batches, sums.
Measured Measure(const Case& c) {
  const TestFiles files;
  const JobSpec job = JobOf(c, files);
  const MetaGraph metagraph =
      BuildMetaGraph(MakeMetaGraphRequest(job, nullptr, {&c.inputs, 1}, c.labels, kSamples).value()).value();
  const std::string bytes = SerializeMetaGraph(metagraph).value();
  const auto bytes_of = [](const TensorSpec& spec) { return NumElements(spec.shape) * DTypeSize(spec.dtype); };
  const int64_t data = kSamples * (bytes_of(c.inputs) + bytes_of(c.labels)) * (c.evaluates ? 2 : 1);
  const ReplicaForecast forecast = ForecastWorker(metagraph, job, data).value();
  ReplicaProblem problem;
  const auto replica = Replica::Make(bytes, job, "", nullptr, problem);
  LS_CHECK(replica != nullptr, std::string(problem.status.message()).c_str());
  SnapshotStore snapshots;
  LS_CHECK(snapshots.Reserve(replica->state(), kSnapshotBuffers).ok(), "snapshots fit");
  FillParameters(replica->state());
  replica->runner().StateReplaced();
  const auto communicators = MakeLoopback({1, 1}, 1);
  for (int64_t step = 1; step <= 2; ++step) {
    LS_CHECK(replica->runner().RunStep(*communicators[0], step, {}).ok(), "a step");
    LS_CHECK(snapshots.Take(replica->state()).ok(), "a snapshot");
  }
  if (c.evaluates) LS_CHECK(replica->runner().RunSlice(*communicators[0], 2, 0, {}).ok(), "a slice");
  return {forecast.total(), forecast.beside.process, OfProcess("VmHWM:")};
}

Measured MeasureApart(const Case& c) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const Measured measured = Measure(c);
    const bool sent = write(ends[1], &measured, sizeof measured) == sizeof measured;
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  Measured measured;
  const auto got = read(ends[0], &measured, sizeof measured);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(status == 0);
  REQUIRE(got == sizeof measured);
  return measured;
}

std::vector<Case> Cases() {
  return {
      kLenet,
      Case{"mlp",
           "model: {builtin: {name: mlp, classes: 10, hidden: [4096, 4096]}, loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 32, logical_shards: 2, micro_batch: 4, "
           "optimizer: {lr: 0.1}}\n",
           {"inputs", DType::kF32, {512}},
           kLabel},
      Case{"gpt2",
           "model: {builtin: {name: gpt2, layers: 4, heads: 4, width: 128, context: 128, vocabulary: 256}, "
           "loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 16, logical_shards: 1, optimizer: {name: adamw, lr: 1e-3}}\n",
           {"inputs", DType::kI64, {128}},
           {"labels", DType::kI64, {128}}},
      Case{"resnet18",
           "model: {builtin: {name: resnet18, classes: 10, small_images: true}, loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 32, logical_shards: 1, "
           "optimizer: {lr: 0.1, momentum: 0.9}}\n",
           {"inputs", DType::kF32, {3, 32, 32}},
           kLabel,
           true},
      Case{"resnet50",
           "model: {builtin: {name: resnet50, classes: 100}, loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 4, logical_shards: 2, optimizer: {lr: 0.1, momentum: 0.9}}\n",
           {"inputs", DType::kF32, {3, 64, 64}},
           kLabel},
      Case{"vit",
           "model: {builtin: {name: vit, classes: 10, patch: 4, layers: 4, heads: 4, width: 192}, "
           "loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 16, logical_shards: 1, optimizer: {name: adamw, lr: 1e-3}}\n",
           {"inputs", DType::kF32, {3, 32, 32}},
           kLabel},
      Case{"bf16",
           "model: {builtin: {name: gpt2, layers: 4, heads: 4, width: 128, context: 128, vocabulary: 256}, "
           "loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 16, logical_shards: 1, precision: bf16, "
           "optimizer: {name: adamw, lr: 1e-3}}\n",
           {"inputs", DType::kI64, {128}},
           {"labels", DType::kI64, {128}}},
      Case{"bert",
           "model: {builtin: {name: bert, classes: 2, layers: 2, heads: 4, width: 256, context: 64, "
           "vocabulary: 1000}, loss: softmax_cross_entropy}\n"
           "train: {duration: 9steps, global_batch_size: 16, logical_shards: 4, ema: {decay: 0.9}, "
           "optimizer: {name: adamw, lr: 1e-4}}\n",
           {"inputs", DType::kI64, {64}},
           kLabel}};
}

TEST_CASE("forecast: the peak of a worker's process is the forecast within 5%", "[step]") {
  if (kSanitized) {
    WARN("left out: a sanitizer's own memory is not forecast");
    return;
  }
  std::printf("%-6s %14s %14s %14s %7s\n", "model", "predicted MiB", "process MiB", "peak MiB", "ratio");
  for (const Case& c : Cases()) {
    INFO(c.job);
    const Measured measured = MeasureApart(c);

    const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
    const double ratio = mib(measured.forecast) / mib(measured.peak);
    std::printf("%-6s %14.1f %14.1f %14.1f %7.3f\n", c.name.c_str(), mib(measured.forecast), mib(measured.process),
                mib(measured.peak), ratio);
    CHECK(std::abs(ratio - 1) <= 0.05);
  }
}

}  // namespace
}  // namespace lockstep::worker
