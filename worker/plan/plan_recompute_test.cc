// Computing again: the same bits from less memory, whatever the model.
#include <catch2/catch.hpp>
#include <cstring>

#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

MetaGraph Image(const std::string& architecture, int64_t batch) {
  MetaGraphRequest request = ImageRequest(architecture, batch);
  request.model.small_images = true;
  request.inputs[0].shape = {kBatchDim, 3, 32, 32};
  return Must(BuildMetaGraph(request));
}

MetaGraph Text(const std::string& architecture, int64_t batch) {
  MetaGraphRequest request;
  request.model.architecture = architecture;
  request.model.layers = 4;
  request.model.heads = 2;
  request.model.width = 32;
  request.model.context = 16;
  request.model.vocabulary = 24;
  request.model.outputs = 10;
  request.model.dropout = 0.2;
  const Shape labels = architecture == "gpt2" ? Shape{kBatchDim, 16} : Shape{kBatchDim};
  request.inputs = {{"tokens", "tokens", InputRole::kFeature, DType::kI64, {kBatchDim, 16}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, labels, {}}};
  request.update.schedule.lr = 0.05;
  request.pass_batch = batch;
  return Must(BuildMetaGraph(request));
}

// Every output of a pass, bit by bit, with what the plan took and which kernels it chose.
struct Outcome {
  std::vector<std::string> outputs;
  KernelChoices choices;
  std::vector<std::string> digests;
  int64_t arena = 0;
  int64_t again = 0;
};

Outcome Pass(device::DeviceKind kind, const MetaGraph& metagraph, Recomputation recompute) {
  const auto device = Must(device::MakeDevice(kind, {}));
  TestVariables variables(metagraph, 7);
  const TrainingGraph graph = Must(MakeTrainingGraph(metagraph));
  const auto plan = Must(Plan::Make(device.get(), graph.graph, variables.addresses, {.recompute = recompute}));
  const TestInputs inputs(plan->inputs(), 11);
  MustOk(plan->RefreshVariables());
  MustOk(plan->RunPass(inputs.bytes, {.seed = 1, .step = 1, .logical_shard = 0, .pass = 0}));
  const PassKey key{.seed = 3, .step = 5, .logical_shard = 1, .pass = 0};
  Outcome outcome{.outputs = {}, .choices = plan->choices(), .digests = {}, .arena = plan->memory().arena, .again = 0};
  for (const NodeDigest& digest : Must(plan->RunPassWithDigests(inputs.bytes, key))) {
    outcome.digests.push_back(digest.node + digest.sha256);
  }
  MustOk(plan->RunPass(inputs.bytes, key));
  for (const TensorSpec& output : plan->outputs()) {
    std::string bytes(static_cast<size_t>(NumElements(output.shape) * DTypeSize(output.dtype)), '\0');
    MustOk(plan->ReadOutput(plan->FindOutput(output.name),
                            absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size())));
    outcome.outputs.push_back(output.name + bytes);
  }
  for (const PlannedStep& step : plan->Describe()) outcome.again += step.text.rfind("again: ", 0) == 0 ? 1 : 0;
  return outcome;
}

TEST_CASE("recompute: losses, gradients and statistics have the same bits as without, from less memory", "[plan]") {
  const std::string model = GENERATE("mlp", "resnet18", "gpt2", "bert");
  const bool image = model == "resnet18";
  const MetaGraph metagraph = model == "mlp" ? MlpModel(64) : image ? Image(model, 8) : Text(model, 8);
  INFO(model);

  const Outcome kept = Pass(device::DeviceKind::kCpu, metagraph, Recomputation::kNone);
  const Outcome cheap = Pass(device::DeviceKind::kCpu, metagraph, Recomputation::kCheap);
  const Outcome blocks = Pass(device::DeviceKind::kCpu, metagraph, Recomputation::kBlocks);

  CHECK(kept.again == 0);
  CHECK(cheap.outputs == kept.outputs);
  CHECK(blocks.outputs == kept.outputs);
  // A worker with another setting replays the same kernel plan, whose probe it gives too.
  CHECK(blocks.choices == kept.choices);
  CHECK(blocks.digests == kept.digests);
  CHECK(blocks.arena <= cheap.arena);
  CHECK(cheap.arena <= kept.arena);
  if (model == "mlp") return;  // all that it keeps, it needs at once
  CHECK(blocks.again > 10);
  CHECK(blocks.arena * 10 < kept.arena * 9);
}

TEST_CASE("recompute: weights are brought into a kernel's layout where they are read, in large passes", "[plan]") {
  const auto device = Must(device::MakeDevice(device::DeviceKind::kCpu, {}));
  const auto draft = [&](int64_t batch, Recomputation recompute) {
    const MetaGraph metagraph = Image("resnet18", batch);
    const TrainingGraph graph = Must(MakeTrainingGraph(metagraph));
    return Must(Plan::Draft(device.get(), graph.graph, {.recompute = recompute}))->memory();
  };

  const PlanMemory kept = draft(32, Recomputation::kNone);
  const PlanMemory cheap = draft(32, Recomputation::kCheap);
  const EvaluationGraph evaluation = Must(MakeEvaluationGraph(Image("resnet18", 32), 32));
  const PlanMemory evaluated = Must(Plan::Draft(device.get(), evaluation.graph, {}))->memory();

  const int64_t weights = int64_t{11} * 1000 * 1000 * 4;
  CHECK(kept.persistent > weights);
  CHECK(cheap.persistent < weights / 4);
  CHECK(evaluated.persistent < weights / 4);
  CHECK(cheap.total() + weights / 2 < kept.total());
  // One sample does not pay for its weights' way.
  CHECK(draft(1, Recomputation::kCheap).persistent > weights);
}

TEST_CASE("recompute: probabilities of attention that is no op are made again in some layers, while products are few",
          "[plan]") {
  MetaGraphRequest request;
  request.model = {.architecture = "gpt2", .layers = 6, .heads = 6, .width = 384, .context = 256, .vocabulary = 128};
  request.inputs = {{"tokens", "tokens", InputRole::kFeature, DType::kI64, {kBatchDim, 256}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim, 256}, {}}};
  request.update.schedule.lr = 0.05;
  request.pass_batch = 4;
  MetaGraph metagraph = Must(BuildMetaGraph(request));
  // What is added to the scores is trained: no op does that.
  std::erase_if(metagraph.forward.constants, [](const Constant& c) { return c.name == "causal_mask"; });
  metagraph.forward.variables.push_back({"causal_mask", DType::kF32, {256, 256}, VariableKind::kParameter, {}});
  const TrainingGraph graph = Must(MakeTrainingGraph(metagraph));
  const auto device = Must(device::MakeDevice(device::DeviceKind::kCpu, {}));

  const auto plan = Must(Plan::Draft(device.get(), graph.graph, {}));

  int softmaxes = 0;
  int products = 0;
  for (const PlannedStep& step : plan->Describe()) {
    if (step.text.rfind("again: ", 0) != 0) continue;
    softmaxes += step.op == "Softmax" ? 1 : 0;
    products += step.op == "MatMul" || step.op == "BatchMatMul" || step.op == "Gemm" ? 1 : 0;
  }
  CHECK(softmaxes >= 1);
  CHECK(softmaxes <= 3);
  CHECK(products == softmaxes);
}

TEST_CASE("recompute: the reference device gives the same bits too, dropout included", "[plan]") {
  const MetaGraph metagraph = Text("gpt2", 4);

  const Outcome kept = Pass(device::DeviceKind::kReference, metagraph, Recomputation::kNone);
  const Outcome blocks = Pass(device::DeviceKind::kReference, metagraph, Recomputation::kBlocks);

  CHECK(blocks.again > 10);
  CHECK(blocks.outputs == kept.outputs);
  CHECK(blocks.arena < kept.arena);
}

}  // namespace
}  // namespace lockstep::worker
