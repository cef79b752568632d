// What executing a plan costs beside its kernels: LeNet's forward and backward pass at batch 64 on one thread, and the
// time of the same pass that was spent inside kernel launches. Prints one JSON object; `--batch N`, `--passes N`,
// `--row-major` (no blocked layouts) and `--describe` (the kernels, on stderr) change what is measured.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/passes/training_graph.h"
#include "common/status/check.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"
#include "worker/profile/profiled_device.h"

namespace lockstep::worker {
namespace {

using BenchClock = std::chrono::steady_clock;

double Seconds(BenchClock::time_point from) { return std::chrono::duration<double>(BenchClock::now() - from).count(); }

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  LS_CHECK(value.ok(), "the benchmark's own graph can be planned");
  return *std::move(value);
}

MetaGraph LenetOf(int64_t batch) {
  MetaGraphRequest request;
  request.model.architecture = "lenet";
  request.inputs = {{"images", "images", InputRole::kFeature, DType::kF32, {kBatchDim, 1, 28, 28}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.05;
  request.pass_batch = batch;
  return Must(BuildMetaGraph(request));
}

struct Arguments {
  int64_t batch = 64;
  int passes = 300;
  bool row_major = false;
  bool describe = false;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--row-major") == 0) arguments.row_major = true;
    if (std::strcmp(argv[i], "--describe") == 0) arguments.describe = true;
    if (std::strcmp(argv[i], "--batch") == 0 && i + 1 < argc) arguments.batch = std::atol(argv[++i]);
    if (std::strcmp(argv[i], "--passes") == 0 && i + 1 < argc) arguments.passes = std::atoi(argv[++i]);
  }
  return arguments;
}

void Run(const Arguments& arguments) {
  const MetaGraph metagraph = LenetOf(arguments.batch);
  const TrainingGraph training = Must(MakeTrainingGraph(metagraph));
  std::vector<Tensor> state = Must(MakeInitialState(metagraph, 1));
  std::map<std::string, std::byte*> variables;
  for (size_t i = 0; i < training.graph.variables.size(); ++i) {
    variables[training.graph.variables[i].name] = state[i].data();
  }
  Profiler profiler({.most_spans = 0});
  ProfiledDevice device(Must(device::MakeDevice(device::DeviceKind::kCpu, {})), &profiler);
  const auto plan = Must(Plan::Make(&device, training.graph, variables, {.free_layouts = !arguments.row_major}));
  std::vector<Tensor> inputs;
  std::vector<worker::InputBytes> bytes;
  for (const TensorSpec& spec : plan->inputs()) {
    inputs.push_back(Tensor::Zeros(spec.dtype, spec.shape));
    bytes.push_back(inputs.back().bytes());
  }

  std::map<std::string, double> fastest;  // microseconds, by node
  double best = 1e9;
  double best_kernels = 0;
  for (int i = 0; i < arguments.passes; ++i) {
    profiler.Start();
    const auto start = BenchClock::now();
    LS_CHECK(plan->RefreshVariables().ok() && plan->RunPass(bytes, {}).ok() && plan->Synchronize().ok(),
             "a planned pass runs");
    const double seconds = Seconds(start);
    profiler.Stop();
    double kernels = 0;
    for (size_t w = 0; w < profiler.works().size(); ++w) {
      const ProfiledWork& work = profiler.works()[w];
      if (work.implementation.empty()) continue;  // a copy
      const double spent = static_cast<double>(profiler.totals()[w].ns) * 1e-9;
      kernels += spent;
      const auto [entry, first] = fastest.try_emplace(work.name, spent * 1e6);
      entry->second = std::min(entry->second, spent * 1e6);
    }
    if (seconds >= best) continue;
    best = seconds;
    best_kernels = kernels;
  }
  if (arguments.describe) {
    for (const PlannedStep& step : plan->Describe()) std::fprintf(stderr, "%s\n", step.text.c_str());
    for (const auto& [node, us] : fastest) std::fprintf(stderr, "%8.1f us  %s\n", us, node.c_str());
  }
  std::printf(
      "{\"model\": \"lenet\", \"batch\": %lld, \"threads\": 1, \"instruction_set\": \"%s\", \"blocked\": %s, "
      "\"pass_ms\": %.4f, \"kernels_ms\": %.4f, \"outside_kernels_share\": %.4f, \"samples_per_second\": %.0f, "
      "\"plan_bytes\": %lld}\n",
      static_cast<long long>(arguments.batch), device.info().instruction_set.c_str(),
      arguments.row_major ? "false" : "true", best * 1e3, best_kernels * 1e3, 1 - best_kernels / best,
      static_cast<double>(arguments.batch) / best, static_cast<long long>(plan->memory().total()));
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  lockstep::worker::Run(lockstep::worker::Parse(argc, argv));
  return 0;
}
