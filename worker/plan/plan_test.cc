#include "worker/plan/plan.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "common/graph/graph_editor.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/arena.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;
using device::DeviceKind;

std::unique_ptr<device::Device> NewDevice(DeviceKind kind) { return Must(device::MakeDevice(kind, {})); }

// A training plan with everything that it needs, after one pass.
struct Run {
  Run(DeviceKind kind, const MetaGraph& metagraph, PlanOptions options = {})
      : device(NewDevice(kind)), variables(metagraph, 7), graph(Must(MakeTrainingGraph(metagraph))) {
    plan = Must(Plan::Make(device.get(), graph.graph, variables.addresses, options));
    inputs = std::make_unique<TestInputs>(plan->inputs(), 11);
    MustOk(plan->RefreshVariables());
    MustOk(plan->RunPass(inputs->bytes, key));
    MustOk(plan->Synchronize());
  }
  std::vector<float> Gradients() {
    std::vector<float> flat(plan->gradient_layout().total_elements());
    for (const Bucket& bucket : plan->gradient_layout().buckets()) {
      const auto number = static_cast<int>(&bucket - plan->gradient_layout().buckets().data());
      for (int t = bucket.first_tensor; t < bucket.last_tensor; ++t) CopyTensor(number, t, flat);
    }
    return flat;
  }
  // Copies one tensor of a bucket to its place in `flat`.
  void CopyTensor(int bucket, int tensor, std::vector<float>& flat) {
    const int64_t begin = plan->gradient_layout().buckets()[static_cast<size_t>(bucket)].range.offset;
    const FlatRange range = plan->gradient_layout().tensors()[static_cast<size_t>(tensor)];
    const auto* values = reinterpret_cast<const float*>(plan->bucket_address(bucket)) - begin;
    std::copy(values + range.offset, values + range.end(), flat.begin() + range.offset);
  }
  std::unique_ptr<device::Device> device;
  TestVariables variables;
  TrainingGraph graph;
  std::unique_ptr<Plan> plan;
  std::unique_ptr<TestInputs> inputs;
  PassKey key{.seed = 3, .step = 5, .logical_shard = 1, .pass = 0};
};

// Largest difference over the largest magnitude, which counts as at least 0.01: a bias in front of batch normalisation
// has a gradient of zero, so that only rounding is seen.
double RelativeDifference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::fabs(double{a[i]}));
    difference = std::max(difference, std::fabs(double{a[i]} - b[i]));
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
  }
  return difference / std::max(largest, 0.01);
}

TEST_CASE("plan: the cpu computes the reference's losses and gradients", "[plan]") {
  const bool lenet = GENERATE(true, false);
  const MetaGraph metagraph = lenet ? LenetModel(8) : MlpModel(8);

  Run reference(DeviceKind::kReference, metagraph);
  Run cpu(DeviceKind::kCpu, metagraph);

  REQUIRE(reference.graph.graph.outputs == cpu.graph.graph.outputs);
  for (const TensorSpec& output : cpu.plan->outputs()) {
    INFO(output.name);
    const std::vector<float> expected = ReadFloats(*reference.plan, output.name);
    CHECK(RelativeDifference(expected, ReadFloats(*cpu.plan, output.name)) < 1e-4);
  }
  CHECK(ReadFloats(*cpu.plan, kLossDenominator)[0] == 8.0f);
}

TEST_CASE("plan: equal passes give equal bits, whatever ran between", "[plan]") {
  Run run(DeviceKind::kCpu, MlpModel(8));
  const std::vector<float> first = run.Gradients();

  PassKey other = run.key;
  other.step = 6;
  MustOk(run.plan->RunPass(run.inputs->bytes, other));
  MustOk(run.plan->Synchronize());
  const std::vector<float> between = run.Gradients();
  MustOk(run.plan->RunPass(run.inputs->bytes, run.key));
  MustOk(run.plan->Synchronize());

  CHECK(first == run.Gradients());
  // Dropout of another step drops others.
  CHECK(first != between);
}

TEST_CASE("plan: gradients lie where the layout says, in the order in which backward finishes them", "[plan]") {
  Run run(DeviceKind::kCpu, LenetModel(4), {.bucket_bytes = 1 << 14});
  const GradientLayout& layout = run.plan->gradient_layout();
  const std::vector<std::string>& parameters = run.plan->gradient_parameters();

  REQUIRE(parameters.size() == 10);
  REQUIRE(layout.tensors().size() == 10);
  // The last layer's come first.
  CHECK_THAT(parameters.front(), Contains("fc3"));
  CHECK_THAT(parameters.back(), Contains("conv1"));
  const std::vector<float> flat = run.Gradients();
  for (size_t i = 0; i < parameters.size(); ++i) {
    INFO(parameters[i]);
    const FlatRange range = layout.tensors()[i];
    const std::vector<float> part(flat.begin() + range.offset, flat.begin() + range.end());
    CHECK(part == ReadFloats(*run.plan, GradientName(parameters[i])));
    CHECK(RelativeDifference(part, std::vector<float>(part.size(), 0.0f)) > 0);
  }
}

TEST_CASE("plan: every bucket is announced once, in order, when its gradients are final", "[plan]") {
  const std::vector<float> expected = Run(DeviceKind::kReference, LenetModel(4), {.bucket_bytes = 1 << 14}).Gradients();
  const GradientMemory memory =
      GENERATE(GradientMemory::kUntilRead, GradientMemory::kUntilNextPass, GradientMemory::kApart);
  const bool kept = memory != GradientMemory::kUntilRead;
  Run run(DeviceKind::kReference, LenetModel(4), {.bucket_bytes = 1 << 14, .gradients = memory});
  const std::vector<Bucket>& buckets = run.plan->gradient_layout().buckets();
  REQUIRE(buckets.size() >= 2);

  int announced = 0;
  std::vector<float> flat(expected.size());
  MustOk(run.plan->RunPass(run.inputs->bytes, run.key, [&](int bucket) {
    CHECK(bucket == announced++);
    const Bucket& announcing = buckets[static_cast<size_t>(bucket)];
    for (int t = announcing.first_tensor; t < announcing.last_tensor; ++t) run.CopyTensor(bucket, t, flat);
    // Nobody reads it any more where it is not kept.
    auto* values = reinterpret_cast<float*>(run.plan->bucket_address(bucket));
    if (!kept) std::fill(values, values + announcing.range.size, NAN);
    return absl::OkStatus();
  }));

  CHECK(flat == expected);
  CHECK(run.plan->keeps_gradients() == kept);
  if (kept) CHECK(run.Gradients() == expected);
  CHECK(announced == static_cast<int>(buckets.size()));
  const absl::Status failed =
      run.plan->RunPass(run.inputs->bytes, run.key, [](int) { return absl::AbortedError("the peer went away"); });
  CHECK(failed.message() == "the peer went away");
}

TEST_CASE("plan: gradients lie where values lay that backward has read, and none stay that are not kept", "[plan]") {
  MetaGraphRequest request = ImageRequest("mlp", 256);
  request.model.hidden_sizes = {256, 256, 256, 256, 256, 256};
  const MetaGraph metagraph = Must(BuildMetaGraph(request));
  const TrainingGraph graph = Must(MakeTrainingGraph(metagraph));
  const auto device = NewDevice(DeviceKind::kReference);
  const auto memory = [&](PlanOptions options) {
    options.bucket_bytes = 1 << 10;
    return Must(Plan::Draft(device.get(), graph.graph, options))->memory();
  };

  const PlanMemory kept = memory({});
  const PlanMemory taken = memory({.gradients = GradientMemory::kUntilRead});
  const PlanMemory apart = memory({.gradients = GradientMemory::kApart});
  const PlanMemory added = memory({.accumulate_passes = true});

  const int64_t values = int64_t{256} * (784 + 6 * 256) * 4;
  const int64_t gradients = int64_t{256} * (784 + 5 * 256) * 4;
  CHECK(kept.arena * 5 < (values + gradients) * 4);
  CHECK(taken.arena * 10 < (values + gradients) * 7);
  CHECK(kept.gradients == 0);
  CHECK(added.gradients >= gradients);
  CHECK(added.arena == taken.arena);
  CHECK(apart.arena <= taken.arena);
  CHECK(apart.gradients == added.gradients);
}

TEST_CASE("plan: gradients outside the arena lie in the caller's memory, and no pass writes elsewhere in it",
          "[plan]") {
  Run run(DeviceKind::kCpu, MlpModel(8), {.bucket_bytes = 1 << 10, .gradients = GradientMemory::kApart});
  const std::vector<float> expected = run.Gradients();
  const GradientLayout& layout = run.plan->gradient_layout();
  REQUIRE(layout.buckets().size() >= 2);
  run.plan->Release();
  std::byte* given = nullptr;
  MustOk(run.plan->Bind(run.variables.addresses, [&](size_t bytes) {
    CHECK(bytes == layout.total_elements() * sizeof(float));
    auto memory = run.device->Allocate(bytes);
    given = (*memory)->address();
    return memory;
  }));
  const auto floats = [&] { return absl::MakeSpan(reinterpret_cast<float*>(given), layout.total_elements()); };
  std::fill(floats().begin(), floats().end(), 7.0f);
  MustOk(run.plan->RefreshVariables());

  MustOk(run.plan->RunPass(run.inputs->bytes, run.key));
  MustOk(run.plan->Synchronize());

  CHECK(run.Gradients() == expected);
  std::vector<float> padding(floats().begin(), floats().end());
  for (const FlatRange& tensor : layout.tensors()) {
    std::copy_n(floats().begin() + tensor.offset, tensor.size, padding.begin() + tensor.offset);
    CHECK(
        std::equal(expected.begin() + tensor.offset, expected.begin() + tensor.end(), padding.begin() + tensor.offset));
    std::fill_n(padding.begin() + tensor.offset, tensor.size, 7.0f);
  }
  CHECK(std::all_of(padding.begin(), padding.end(), [](float value) { return value == 7.0f; }));
  for (size_t b = 0; b < layout.buckets().size(); ++b) {
    const auto* const address = reinterpret_cast<const float*>(run.plan->bucket_address(static_cast<int>(b)));
    CHECK(address == floats().data() + layout.buckets()[b].range.offset);
  }
}

TEST_CASE("plan: the gradients of several passes add up in the buckets", "[plan]") {
  Run run(DeviceKind::kCpu, MlpModel(8), {.accumulate_passes = true});
  const std::vector<float> first = run.Gradients();
  PassKey second = run.key;
  second.pass = 1;

  MustOk(run.plan->RunPass(run.inputs->bytes, second));
  MustOk(run.plan->Synchronize());
  const std::vector<float> both = run.Gradients();

  Run alone(DeviceKind::kCpu, MlpModel(8));
  MustOk(alone.plan->RunPass(alone.inputs->bytes, second));
  MustOk(alone.plan->Synchronize());
  std::vector<float> sum = alone.Gradients();
  REQUIRE(sum.size() == first.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = first[i] + sum[i];
  CHECK(both == sum);
}

TEST_CASE("plan: a cancelled pass stops before its next node and can be run again", "[plan]") {
  Run run(DeviceKind::kCpu, LenetModel(4));
  const std::vector<float> expected = run.Gradients();
  const uint64_t start = run.plan->nodes_executed();
  MustOk(run.plan->RunPass(run.inputs->bytes, run.key));
  const uint64_t before = run.plan->nodes_executed();
  CHECK(before - start > 20);

  run.plan->Cancel(true);
  const absl::Status status = run.plan->RunPass(run.inputs->bytes, run.key);
  CHECK(absl::IsCancelled(status));
  CHECK(run.plan->nodes_executed() == before);

  run.plan->Cancel(false);
  MustOk(run.plan->RunPass(run.inputs->bytes, run.key));
  CHECK(run.Gradients() == expected);
  CHECK(run.plan->nodes_executed() == before + (before - start));
}

TEST_CASE("plan: variables are read at their own address in every pass", "[plan]") {
  Run run(DeviceKind::kCpu, LenetModel(4));
  const std::vector<float> before = run.Gradients();

  for (Tensor& tensor : run.variables.tensors) {
    for (float& value : tensor.elements<float>()) value *= 0.5f;
  }
  MustOk(run.plan->RefreshVariables());
  MustOk(run.plan->RunPass(run.inputs->bytes, run.key));

  Run fresh(DeviceKind::kReference, LenetModel(4));
  for (Tensor& tensor : fresh.variables.tensors) {
    for (float& value : tensor.elements<float>()) value *= 0.5f;
  }
  MustOk(fresh.plan->RefreshVariables());
  MustOk(fresh.plan->RunPass(fresh.inputs->bytes, fresh.key));
  CHECK(before != run.Gradients());
  for (const TensorSpec& output : run.plan->outputs()) {
    INFO(output.name);
    CHECK(RelativeDifference(ReadFloats(*fresh.plan, output.name), ReadFloats(*run.plan, output.name)) < 1e-4);
  }
}

TEST_CASE("plan: a draft knows what the plan takes, and names what is alive when most is", "[plan]") {
  const MetaGraph metagraph = LenetModel(64);
  const TrainingGraph graph = Must(MakeTrainingGraph(metagraph));
  const TestVariables variables(metagraph, 7);
  const auto device = NewDevice(DeviceKind::kCpu);

  const auto draft = Must(Plan::Draft(device.get(), graph.graph, {}));
  const PlanPeak peak = draft->Peak();
  const auto made = Must(Plan::Make(device.get(), graph.graph, variables.addresses, {}));

  CHECK(draft->memory().total() == made->memory().total());
  CHECK(draft->Describe() == made->Describe());
  CHECK(draft->gradient_layout().total_elements() == made->gradient_layout().total_elements());
  CHECK(peak.lower_bound <= draft->memory().arena);
  REQUIRE(peak.parts.size() >= 2);
  CHECK(peak.parts[0].bytes >= peak.parts[1].bytes);
  int64_t sum = 0;
  for (const PlanPeak::Part& part : peak.parts) {
    CHECK_FALSE(part.name.empty());
    sum += part.bytes;
  }
  CHECK(sum == peak.lower_bound);
}

TEST_CASE("plan: values under another shape take no memory of their own", "[plan]") {
  const auto bytes_of = [](int views) {
    const int64_t size = 1 << 16;
    Graph graph;
    graph.inputs = {{"x", DType::kF32, {size}}};
    std::string last = "x";
    for (int i = 0; i < views; ++i) {
      const std::string name = "view" + std::to_string(i);
      graph.nodes.push_back({name, OpType::kReshape, {last}, {name}, ReshapeAttributes{{size / (i + 1), i + 1}, true}});
      last = name;
    }
    graph.nodes.push_back({"y", OpType::kRelu, {last}, {"y"}, NoAttributes{}});
    graph.outputs = {"y"};
    MustOk(InferShapes(&graph));
    const auto device = NewDevice(DeviceKind::kCpu);
    return Must(Plan::Make(device.get(), graph, {}, {}))->memory().arena;
  };

  CHECK(bytes_of(2) == bytes_of(0));
}

TEST_CASE("plan: constants that are equal take the memory of one", "[plan]") {
  const auto bytes_of = [](float last) {
    Graph graph;
    graph.inputs = {{"x", DType::kF32, {1 << 10}}};
    std::string sum = "x";
    for (const float value : {1.0f, 1.0f, last}) {
      const std::string name = "constant" + std::to_string(graph.constants.size());
      auto tensor = std::make_shared<Tensor>(Tensor::Zeros(DType::kF32, {1 << 10}));
      tensor->elements<float>()[7] = value;
      graph.constants.push_back({name, tensor});
      graph.nodes.push_back({"sum of " + name, OpType::kAdd, {sum, name}, {"with " + name}, NoAttributes{}});
      sum = "with " + name;
    }
    graph.outputs = {sum};
    MustOk(InferShapes(&graph));
    const auto device = NewDevice(DeviceKind::kCpu);
    return Must(Plan::Make(device.get(), graph, {}, {}))->memory().persistent;
  };

  CHECK(bytes_of(1.0f) == 2 * 4096);  // with the output
  CHECK(bytes_of(2.0f) == 3 * 4096);
}

TEST_CASE("plan: an op that no kernel serves is refused with the node's name", "[plan]") {
  Graph graph;
  graph.inputs = {{"x", DType::kI32, {4}}};
  graph.nodes = {{.name = "layer.7", .op = OpType::kRelu, .inputs = {"x"}, .outputs = {"y"}}};
  graph.outputs = {"y"};
  graph.values = {{"x", {DType::kI32, {4}}}, {"y", {DType::kI32, {4}}}};
  const auto device = NewDevice(DeviceKind::kCpu);

  const auto plan = Plan::Make(device.get(), graph, {}, {});

  REQUIRE(absl::IsUnimplemented(plan.status()));
  CHECK_THAT(std::string(plan.status().message()), Contains("node 'layer.7' (Relu)") && Contains("I32"));
}

TEST_CASE("plan: evaluation leaves masked rows out", "[plan]") {
  const MetaGraph metagraph = LenetModel(8);
  const EvaluationGraph graph = Must(MakeEvaluationGraph(metagraph, 6));
  TestVariables variables(metagraph, 7);
  const auto device = NewDevice(DeviceKind::kCpu);
  const auto plan = Must(Plan::Make(device.get(), graph.graph, variables.addresses, {.label = "evaluation"}));
  TestInputs inputs(plan->inputs(), 5);
  MustOk(plan->RefreshVariables());
  MustOk(plan->RunPass(inputs.bytes, {}));
  const float whole = ReadFloats(*plan, kLossSum)[0];

  for (Tensor& tensor : inputs.tensors) {
    if (tensor.shape().size() == 1 && tensor.dtype() == DType::kF32) tensor.elements<float>()[5] = 0.0f;
  }
  MustOk(plan->RunPass(inputs.bytes, {}));

  CHECK(ReadFloats(*plan, kLossDenominator)[0] == 5.0f);
  CHECK(ReadFloats(*plan, kLossSum)[0] < whole);
  int64_t counted = 0;
  MustOk(plan->ReadOutput(plan->FindOutput(kLabelCount),
                          absl::Span<std::byte>(reinterpret_cast<std::byte*>(&counted), sizeof(counted))));
  CHECK(counted == 5);
}

TEST_CASE("arena: values that live at once never overlap, and the arena is not larger than it must be", "[plan]") {
  const std::vector<ArenaRequest> requests = {{100, 0, 2}, {300, 1, 3}, {100, 3, 5},
                                              {0, 2, 2},   {256, 4, 6}, {40, 0, 6}};

  const ArenaLayout layout = PlaceInArena(requests, 64);

  for (size_t a = 0; a < requests.size(); ++a) {
    CHECK(layout.offsets[a] % 64 == 0);
    CHECK(layout.offsets[a] + requests[a].bytes <= layout.bytes);
    for (size_t b = 0; b < a; ++b) {
      if (requests[a].last < requests[b].first || requests[b].last < requests[a].first) continue;
      const bool apart = layout.offsets[a] + requests[a].bytes <= layout.offsets[b] ||
                         layout.offsets[b] + requests[b].bytes <= layout.offsets[a];
      CHECK(apart);
    }
  }
  CHECK(layout.bytes == layout.lower_bound);
}

}  // namespace
}  // namespace lockstep::worker
