// Whole training steps of a model, as a worker with one logical shard takes them (data, forward, backward, update; no
// session, no network): what tests/bench/vs_pytorch.sh compares with PyTorch. Reads lines on stdin, each a number of
// seconds to train for, and answers each with one JSON object. Where time goes: `--profile` writes a table by op and
// one by node to stderr, `--describe` the plan. `--unwatched`: without timing nodes, to see what that costs.
//   --model lenet | FILE.onnx   --batch N   --classes N   --labels D,D   --vocabulary N   --threads N   --adamw
//   --recompute none|cheap|blocks
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/onnx/import.h"
#include "common/graph/onnx/onnx_file.h"
#include "common/graph/passes/training_graph.h"
#include "common/graph/state_layout.h"
#include "common/random/random.h"
#include "common/status/check.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/choice/devices.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/plan/plan.h"
#include "worker/profile/profile_report.h"
#include "worker/profile/profiled_device.h"
#include "worker/step/replica_state.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

using BenchClock = std::chrono::steady_clock;
constexpr int64_t kBatches = 4;  // distinct ones in the data

double Seconds(BenchClock::time_point from) { return std::chrono::duration<double>(BenchClock::now() - from).count(); }

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  LS_CHECK(value.ok(), "the model can be trained");
  return *std::move(value);
}

struct Arguments {
  std::string model = "lenet";
  int64_t batch = 64;
  int64_t classes = 10;
  int64_t vocabulary = 0;
  Shape labels;  // of one sample
  int threads = 1;
  bool adamw = false;
  bool profile = false;
  std::string recompute = "cheap";
  bool unwatched = false;
  bool describe = false;
};

Recomputation RecomputationOf(const std::string& name) {
  if (name == "none") return Recomputation::kNone;
  return name == "blocks" ? Recomputation::kBlocks : Recomputation::kCheap;
}

Arguments Parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (key == "--recompute") a.recompute = value;
    if (key == "--profile") a.profile = true;
    if (key == "--unwatched") a.unwatched = true;
    if (key == "--describe") a.describe = true;
    if (key == "--adamw") a.adamw = true;
    if (key == "--model") a.model = value;
    if (key == "--batch") a.batch = std::atol(value.c_str());
    if (key == "--classes") a.classes = std::atol(value.c_str());
    if (key == "--vocabulary") a.vocabulary = std::atol(value.c_str());
    if (key == "--threads") a.threads = std::atoi(value.c_str());
    if (key != "--labels") continue;
    for (const auto part : absl::StrSplit(value, ',', absl::SkipEmpty())) {
      LS_CHECK(absl::SimpleAtoi(part, &a.labels.emplace_back()), "--labels takes numbers");
    }
  }
  return a;
}

// Random samples: numbers around zero, tokens below the vocabulary, labels below the classes.
class RandomData final : public DataSource {
 public:
  RandomData(const Arguments& arguments, const SignatureInput& feature)
      : fields_({{"inputs", feature.dtype, {feature.shape.begin() + 1, feature.shape.end()}},
                 {"labels", DType::kI64, arguments.labels}}),
        samples_(arguments.batch * kBatches) {
    for (const TensorSpec& field : fields_) {
      Shape whole = field.shape;
      whole.insert(whole.begin(), samples_);
      tensors_.push_back(Tensor::Zeros(field.dtype, whole));
      const RandomStream random = RandomStream::For(1, StreamOfName(field.name));
      const auto below = static_cast<uint32_t>(field.name == "labels" ? arguments.classes : arguments.vocabulary);
      for (int64_t i = 0; i < tensors_.back().num_elements(); ++i) {
        if (field.dtype == DType::kF32) tensors_.back().elements<float>()[i] = SymmetricUnit(random.At(i));
        if (field.dtype == DType::kI64) tensors_.back().elements<int64_t>()[i] = random.At(i) % below;
      }
    }
  }
  int64_t num_samples() const override { return samples_; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    const int64_t bytes = tensors_[field].byte_size() / samples_;
    for (size_t i = 0; i < indices.size(); ++i) {
      std::memcpy(out.data() + i * bytes, tensors_[field].data() + indices[i] * bytes, bytes);
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  const std::vector<TensorSpec> fields_;
  const int64_t samples_;
  std::vector<Tensor> tensors_;
  const std::string hash_ = "random";
};

struct Model {
  MetaGraph metagraph;
  std::map<std::string, Tensor> initial;  // what the file gives; else drawn
};

Model LoadBenchModel(const Arguments& arguments) {
  Model model;
  MetaGraphRequest request;
  SignatureInput feature{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 1, 28, 28}, {}};
  if (absl::EndsWith(arguments.model, ".onnx")) {
    OnnxImportOptions options;
    options.evaluate = device::EvaluateNode;
    options.batch = arguments.batch;
    ImportedModel imported = Must(ImportOnnx(Must(ReadOnnxFile(arguments.model)), options));
    const GraphInput& input = imported.graph.inputs[0];
    feature.name = input.name;
    feature.dtype = input.dtype;
    feature.shape = input.shape;
    model.initial = std::move(imported.initial);
    request.imported = std::move(imported.graph);
    request.class_axis = arguments.labels.size() == 1 ? ClassAxis::kLast : ClassAxis::kSecond;
  } else {
    request.model.architecture = arguments.model;
    request.model.outputs = arguments.classes;
  }
  Shape labels = arguments.labels;
  labels.insert(labels.begin(), kBatchDim);
  request.inputs = {feature, {"labels", "labels", InputRole::kLabel, DType::kI64, labels, {}}};
  request.update.schedule.lr = arguments.adamw ? 1e-4 : 1e-3;
  if (arguments.adamw) request.update.optimizer = {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01};
  if (!arguments.adamw) request.update.optimizer.momentum = 0.9;
  request.pass_batch = arguments.batch;
  model.metagraph = Must(BuildMetaGraph(request));
  return model;
}

std::unique_ptr<ReplicaState> MakeState(const Model& model, device::Device& device) {
  const StateLayout layout = MakeStateLayout(model.metagraph);
  auto state = Must(ReplicaState::Create(layout, device));
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const auto given = model.initial.find(layout.tensors[i].spec.name);
    if (given != model.initial.end()) {
      std::memcpy(state->host().tensor(static_cast<int>(i)).data(), given->second.data(), given->second.byte_size());
      continue;
    }
    const Tensor drawn = Must(MakeInitialTensor(model.metagraph, layout.tensors[i], 1));
    std::memcpy(state->host().tensor(static_cast<int>(i)).data(), drawn.data(), drawn.byte_size());
  }
  return state;
}

// A figure of this process, in KiB: "VmHWM", "VmRSS".
int64_t ProcessKiB(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, what)) return std::atol(line.c_str() + what.size() + 1);
  }
  return 0;
}

void Describe(const Plan& plan, const ReplicaState& state) {
  for (const worker::PlannedStep& step : plan.Describe()) std::fprintf(stderr, "%s\n", step.text.c_str());
  const PlanMemory& memory = plan.memory();
  std::fprintf(stderr,
               "bytes: values, gradients and scratch %lld, sums over passes %lld, persistent %lld, state %lld\n",
               static_cast<long long>(memory.arena), static_cast<long long>(memory.gradients),
               static_cast<long long>(memory.persistent), static_cast<long long>(state.host().bytes().size()));
  const PlanPeak peak = plan.Peak();
  std::fprintf(stderr, "most is alive at '%s': %lld bytes\n", peak.node.c_str(),
               static_cast<long long>(peak.lower_bound));
  for (const PlanPeak::Part& part : peak.parts) {
    std::fprintf(stderr, "%12lld  %s\n", static_cast<long long>(part.bytes), part.name.c_str());
  }
}

void Run(const Arguments& arguments) {
  const Model model = LoadBenchModel(arguments);
  const RandomData data(arguments, model.metagraph.signature[0]);
  Profiler profiler({.most_spans = 0});
  auto device = Must(device::MakeDevice(device::DeviceKind::kCpu, {.threads = arguments.threads}));
  if (!arguments.unwatched) device = std::make_unique<ProfiledDevice>(std::move(device), &profiler);
  const int64_t before = ProcessKiB("VmRSS:");
  const auto state = MakeState(model, *device);
  std::map<std::string, std::byte*> variables;
  for (const Variable& variable : model.metagraph.forward.variables) {
    variables[variable.name] = state->address(state->layout().Find(variable.name));
  }
  StepConfig config{.metagraph = model.metagraph,
                    .training = Must(MakeTrainingGraph(model.metagraph)),
                    .evaluation = {},
                    .seed = 1,
                    .global_batch = arguments.batch,
                    .logical_shards = 1,
                    .profiler = arguments.unwatched ? nullptr : &profiler,
                    .device = device.get()};
  const auto plan = Must(
      Plan::Make(device.get(), config.training.graph, variables, {.recompute = RecomputationOf(arguments.recompute)}));
  const auto runner = Must(StepRunner::Make(std::move(config), state.get(), {.training = plan.get()}, &data, nullptr));
  const auto communicators = MakeLoopback({1, 1}, 1);
  if (arguments.describe) Describe(*plan, *state);
  int64_t step = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const double wanted = std::atof(line.c_str());
    std::vector<double> steps;
    double loss = 0;
    const std::clock_t processor = std::clock();
    profiler.Start();
    const auto start = BenchClock::now();
    do {
      const auto begin = BenchClock::now();
      loss = Must(runner->RunStep(*communicators[0], ++step, {})).record.loss;
      steps.push_back(Seconds(begin));
    } while (Seconds(start) < wanted);
    profiler.Stop();
    const double processor_seconds = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
    const ProfileReport report = ReportByOp(profiler);
    if (arguments.profile) {
      const auto count = static_cast<int64_t>(steps.size());
      std::fprintf(stderr, "%s\n%s\n", TableText(report, count).c_str(),
                   TableText(ReportByNode(profiler), count).c_str());
    }
    std::nth_element(steps.begin(), steps.begin() + static_cast<int64_t>(steps.size() / 2), steps.end());
    const auto share = [&](int64_t ns) { return static_cast<double>(ns) / static_cast<double>(report.total_ns); };
    const auto of = [&](ProfileTrack track) { return report.track_ns[static_cast<size_t>(track)]; };
    std::printf(
        "{\"samples_per_second\": %.3f, \"cpu_ms_per_step\": %.3f, \"products_share\": %.4f, \"kernels_share\": %.4f, "
        "\"update_share\": %.4f, "
        "\"peak_mib\": %.1f, \"plan_mib\": %.1f, \"instruction_set\": \"%s\", \"loss\": %.5f}\n",
        static_cast<double>(arguments.batch) / steps[steps.size() / 2],
        processor_seconds * 1e3 / static_cast<double>(steps.size()), share(report.products_ns),
        share(of(ProfileTrack::kForward) + of(ProfileTrack::kBackward)), share(of(ProfileTrack::kUpdate)),
        static_cast<double>(ProcessKiB("VmHWM:") - before) / 1024,
        static_cast<double>(plan->memory().total()) / (1 << 20), device->info().instruction_set.c_str(), loss);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  lockstep::worker::Run(lockstep::worker::Parse(argc, argv));
  return 0;
}
