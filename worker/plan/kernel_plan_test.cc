// Making, storing, replaying and refusing kernel plans, and the probe that decides.
#include "worker/plan/kernel_plan.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/random/random.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/plan_test_models.h"
#include "worker/plan/probe.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

// A worker that makes the kernel plan of a job, or replays one.
struct Worker {
  explicit Worker(const MetaGraph& metagraph, const KernelPlan* replayed = nullptr)
      : device(Must(device::MakeDevice(device::DeviceKind::kCpu, DeviceOptionsFor(1, replayed)))),
        variables(metagraph, 1),
        training_graph(Must(MakeTrainingGraph(metagraph))),
        evaluation_graph(Must(MakeEvaluationGraph(metagraph, 5))) {
    PlanOptions options{.label = "training"};
    if (replayed != nullptr) ApplyKernelPlan(*replayed, &options);
    training = Must(Plan::Make(device.get(), training_graph.graph, variables.addresses, options));
    options.label = "evaluation";
    evaluation = Must(Plan::Make(device.get(), evaluation_graph.graph, variables.addresses, options));
    kernels = DescribeKernels(device->info(), options, {training.get(), evaluation.get()});
    kernels.probe = Probe();
  }

  std::vector<NodeDigest> Probe() {
    std::vector<NodeDigest> digests =
        Must(RunProbe("training", {training.get(), &training_graph.graph}, variables.addresses));
    const std::vector<Bucket>& buckets = training->gradient_layout().buckets();
    for (size_t b = 0; b < buckets.size(); ++b) {
      const FlatRange first = training->gradient_layout().tensors()[static_cast<size_t>(buckets[b].first_tensor)];
      const size_t bytes = static_cast<size_t>(first.size) * sizeof(float);
      digests.push_back(DigestOf("gradients", {training->bucket_address(static_cast<int>(b)), bytes}));
    }
    for (NodeDigest& digest :
         Must(RunProbe("evaluation", {evaluation.get(), &evaluation_graph.graph}, variables.addresses))) {
      digests.push_back(std::move(digest));
    }
    return digests;
  }

  std::unique_ptr<device::Device> device;
  TestVariables variables;
  TrainingGraph training_graph;
  EvaluationGraph evaluation_graph;
  std::unique_ptr<Plan> training;
  std::unique_ptr<Plan> evaluation;
  KernelPlan kernels;
};

TEST_CASE("kernel plan: two workers of one machine make the same plan and record the same probe", "[plan]") {
  const MetaGraph metagraph = LenetModel(4);

  const Worker a(metagraph);
  const Worker b(metagraph);

  CHECK(a.kernels.choices.size() > 20);
  CHECK(a.kernels.probe.size() > 30);
  CHECK(a.training->longest_node() > absl::ZeroDuration());
  CHECK(SerializeKernelPlan(a.kernels) == SerializeKernelPlan(b.kernels));
  CHECK(KernelPlanHash(SerializeKernelPlan(a.kernels)).size() == 64);
}

TEST_CASE("kernel plan: what was stored is replayed, with the same probe", "[plan]") {
  const MetaGraph metagraph = MlpModel(4);
  Worker maker(metagraph);
  const std::string bytes = SerializeKernelPlan(maker.kernels);

  const KernelPlan stored = Must(ParseKernelPlan(bytes));
  Worker replayer(metagraph, &stored);

  MustOk(CheckKernelPlan(stored, replayer.device->info()));
  MustOk(CompareProbes(stored.probe, replayer.kernels.probe));
  CHECK(SerializeKernelPlan(replayer.kernels) == bytes);
}

TEST_CASE("kernel plan: a plan for another batch, or an unknown implementation, is refused with the node", "[plan]") {
  const Worker maker(LenetModel(4));
  const MetaGraph other = LenetModel(8);
  const TrainingGraph graph = Must(MakeTrainingGraph(other));

  const auto wrong_batch =
      Plan::Make(maker.device.get(), graph.graph, maker.variables.addresses, {.choices = &maker.kernels.choices});
  CHECK_THAT(std::string(wrong_batch.status().message()), Contains("node 'conv1'") && Contains("no choice"));

  KernelChoices changed = maker.kernels.choices;
  for (auto& [node, implementation] : changed) {
    if (absl::StrContains(node, "training/conv2")) implementation = "dnnl:jit:sparc";
  }
  const auto unknown =
      Plan::Make(maker.device.get(), maker.training_graph.graph, maker.variables.addresses, {.choices = &changed});
  CHECK_THAT(std::string(unknown.status().message()), Contains("node 'conv2'") && Contains("dnnl:jit:sparc"));
}

TEST_CASE("kernel plan: another library, instruction set or thread count is refused before any probe", "[plan]") {
  const device::DeviceInfo here{.kind = "cpu", .library = "L 1", .instruction_set = "avx2", .model = "m", .threads = 1};
  const KernelPlan fits{.device = "cpu", .library = "L 1", .instruction_set = "avx2", .threads = 1};
  CHECK(CheckKernelPlan(fits, here).ok());

  KernelPlan plan = fits;
  plan.device = "cuda";
  CHECK_THAT(std::string(CheckKernelPlan(plan, here).message()),
             Contains("of kind cuda: it is trained on GPUs, and this worker computes on its CPU"));
  plan.device = "reference";
  CHECK_THAT(std::string(CheckKernelPlan(plan, here).message()), Contains("of kind reference"));
  plan = fits;
  plan.tf32 = true;
  CHECK_THAT(std::string(CheckKernelPlan(plan, here).message()), Contains("`numerics.tf32: true`, the job says false"));
  plan = fits;
  plan.library = "L 2";
  CHECK_THAT(std::string(CheckKernelPlan(plan, here).message()), Contains("'L 2'") && Contains("'L 1'"));
  plan = fits;
  plan.instruction_set = "avx512_core";
  CHECK_THAT(std::string(CheckKernelPlan(plan, here).message()), Contains("avx512_core"));
  plan = fits;
  plan.threads = 4;
  CHECK_THAT(std::string(CheckKernelPlan(plan, here).message()), Contains("cpu_threads"));
}

TEST_CASE("kernel plan: bytes that are no plan, or one of the future, are not read", "[plan]") {
  CHECK(absl::IsDataLoss(ParseKernelPlan("nonsense").status()));
  CHECK(absl::IsDataLoss(ParseKernelPlan("").status()));
  CHECK(absl::IsFailedPrecondition(ParseKernelPlan(std::string("\x08\x63", 2)).status()));
}

TEST_CASE("probe: the first difference is named", "[plan]") {
  const Worker maker(LenetModel(4));
  std::vector<NodeDigest> other = maker.kernels.probe;
  const size_t changed = other.size() / 2;
  other[changed].sha256[0] = other[changed].sha256[0] == '0' ? '1' : '0';
  other.back().sha256[0] = other.back().sha256[0] == '0' ? '1' : '0';

  const absl::Status status = CompareProbes(maker.kernels.probe, other);

  REQUIRE(absl::IsFailedPrecondition(status));
  CHECK_THAT(std::string(status.message()), Contains("'" + other[changed].node + "'"));
  other = maker.kernels.probe;
  other.pop_back();
  CHECK_FALSE(CompareProbes(maker.kernels.probe, other).ok());
}

TEST_CASE("probe: every variable gets the numbers of its name, which the probes of stored plans were made with",
          "[plan]") {
  MetaGraphRequest request = ImageRequest("mlp", 4);
  request.model.hidden_sizes = {101, 3};  // of 79,184 and 303 weights
  request.model.batch_norm = true;
  const MetaGraph metagraph = Must(BuildMetaGraph(request));
  Worker worker(metagraph);

  REQUIRE(SeedProbeVariables(*worker.training, worker.training_graph.graph, worker.variables.addresses).ok());

  for (const Variable& variable : worker.training_graph.graph.variables) {
    const RandomStream stream = RandomStream::For(0x4c6f636b73746570, StreamOfName(variable.name));
    const auto* const values = reinterpret_cast<const float*>(worker.variables.addresses.at(variable.name));
    const auto count = static_cast<size_t>(Must(CheckedByteSize(variable.dtype, variable.shape))) / sizeof(float);
    const bool statistic = variable.kind == VariableKind::kStatistic;
    size_t others = 0;
    for (size_t i = 0; i < count; ++i) {
      const float unit = SymmetricUnit(stream.At(i));
      if (values[i] != (statistic ? 1.0f + 0.5f * unit : 0.25f * unit)) ++others;
    }
    INFO(variable.name);
    CHECK(others == 0);
  }
}

TEST_CASE("probe: it depends on every weight", "[plan]") {
  Worker worker(MlpModel(4));
  const std::vector<NodeDigest> recorded = worker.kernels.probe;

  // Probing again after training would have changed the variables gives the same digests.
  for (Tensor& tensor : worker.variables.tensors) tensor.elements<float>()[0] += 1.0f;
  MustOk(CompareProbes(recorded, worker.Probe()));

  // A machine whose weights hold one other bit is noticed, from the first node that reads it on.
  TestInputs inputs(worker.training->inputs(), 3);
  const auto first = Must(worker.training->RunPassWithDigests(inputs.bytes, {}));
  for (Tensor& tensor : worker.variables.tensors) {
    INFO(tensor.num_elements());
    float& value = tensor.elements<float>()[0];
    const float before = value;
    value = before + 0.5f;
    MustOk(worker.training->RefreshVariables());
    const bool reads = !CompareProbes(first, Must(worker.training->RunPassWithDigests(inputs.bytes, {}))).ok();
    value = before;
    MustOk(worker.training->RefreshVariables());
    // Running statistics are read by evaluation alone.
    const auto index = static_cast<size_t>(&tensor - worker.variables.tensors.data());
    const Variable& variable = worker.training_graph.graph.variables.size() > index
                                   ? worker.training_graph.graph.variables[index]
                                   : worker.evaluation_graph.graph.variables[index];
    CHECK(reads == (variable.kind == VariableKind::kParameter));
  }
}

TEST_CASE("probe: inputs of every type that can be fed are made", "[plan]") {
  const DType dtype = GENERATE(DType::kBool, DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kU32, DType::kI32,
                               DType::kI64, DType::kF32);
  CAPTURE(DTypeName(dtype));
  Graph graph;
  AppendInput(&graph, {"x", dtype, {8}});
  MustOk(AppendNode(&graph, {"y", OpType::kCast, {"x"}, {"y"}, CastAttributes{DType::kF32}}));
  graph.outputs = {"y"};
  const auto device = Must(device::MakeDevice(device::DeviceKind::kCpu, DeviceOptionsFor(1, nullptr)));
  const auto plan = Must(Plan::Make(device.get(), graph, {}, PlanOptions{.label = "training"}));

  CHECK_FALSE(Must(RunProbe("training", {plan.get(), &graph}, {})).empty());
}

}  // namespace
}  // namespace lockstep::worker
