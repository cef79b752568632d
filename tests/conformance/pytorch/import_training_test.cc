// Models that PyTorch exported train here as they trained there: the loss of every step and the weights at the end,
// from files that import_models.py makes. One logical shard and one pass of all samples, so that nothing depends on an
// order.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/graph/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/onnx/import.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/data/data_source.h"
#include "worker/device/devices.h"
#include "worker/device/evaluate_node.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

constexpr int kSteps = 20;
constexpr int64_t kBatch = 32;
const std::string kFolder = "tests/conformance/pytorch/import/";

// What PyTorch's run left: losses, then sum and norm of every tensor of the state.
struct Golden {
  std::vector<double> losses;
  std::map<std::string, std::pair<double, double>> tensors;
};

Golden ReadGolden(const std::string& name) {
  Golden golden;
  std::ifstream file(kFolder + name + ".losses.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (golden.losses.size() < kSteps) {
      words >> golden.losses.emplace_back();
    } else {
      std::string key;
      words >> key;
      words >> golden.tensors[key].first >> golden.tensors[key].second;
    }
  }
  return golden;
}

MetaGraph MakeMetaGraph(const ImportedModel& model) {
  MetaGraphRequest request;
  request.imported = model.graph;
  const GraphInput& input = model.graph.inputs[0];
  request.inputs = {{input.name, "inputs", InputRole::kFeature, input.dtype, input.shape, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0.9};
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = 0.05};
  request.pass_batch = kBatch;
  return BuildMetaGraph(request).value();
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::pair<double, double>> tensors;
};

Trained Train(const std::string& name, device::DeviceKind kind) {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.batch = kBatch;
  const ImportedModel model = ImportOnnx(ReadOnnxFile(kFolder + name + ".onnx").value(), options).value();
  const MetaGraph metagraph = MakeMetaGraph(model);
  job::DataFiles files;
  files.set_inputs(kFolder + name + ".inputs.npy");
  files.set_labels(kFolder + name + ".labels.npy");
  files.set_format(job::DataFiles::FORMAT_NPY);
  const auto data = OpenDataSource(files, {.label_classes = 5}).value();

  const auto device = device::MakeDevice(kind, {}).value();
  ReplicaState state = ReplicaState::Create(MakeStateLayout(metagraph)).value();
  const auto of_model = [&](const std::string&, const std::string& tensor) -> absl::StatusOr<Tensor> {
    return model.initial.at(tensor).Clone();
  };
  const std::vector<Tensor> initial = MakeInitialState(metagraph, 0, of_model).value();
  REQUIRE(state.Load(initial).ok());
  std::map<std::string, std::byte*> variables;
  for (const Variable& variable : metagraph.forward.variables) {
    variables[variable.name] = state.tensor(state.layout().Find(variable.name)).data();
  }
  StepConfig config{.metagraph = metagraph,
                    .training = MakeTrainingGraph(metagraph).value(),
                    .seed = 0,
                    .global_batch = kBatch,
                    .logical_shards = 1};
  const auto plan = Plan::Make(device.get(), config.training.graph, variables, {}).value();
  StepRunner runner(std::move(config), &state, plan.get(), nullptr, data.get(), nullptr);
  auto communicators = MakeLoopback({1, 1}, 1);
  Trained trained;
  for (int step = 1; step <= kSteps; ++step) {
    const auto result = runner.RunStep(*communicators[0], step, {});
    INFO(result.status().ToString());
    REQUIRE(result.ok());
    trained.losses.push_back(result->record.loss);
  }
  for (const Variable& variable : metagraph.forward.variables) {
    const absl::Span<std::byte> bytes = state.tensor(state.layout().Find(variable.name));
    const auto* elements = reinterpret_cast<const float*>(bytes.data());
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < NumElements(variable.shape); ++i) {
      sum += elements[i];
      squares += static_cast<double>(elements[i]) * elements[i];
    }
    trained.tensors[variable.name] = {sum, std::sqrt(squares)};
  }
  return trained;
}

TEST_CASE("import: exported models train as PyTorch trains them", "[onnx][pytorch]") {
  const std::string name = GENERATE("mlp", "cnn", "attention");
  const auto kind = GENERATE(device::DeviceKind::kReference, device::DeviceKind::kCpu);
  CAPTURE(name, kind == device::DeviceKind::kCpu);
  const Golden golden = ReadGolden(name);
  REQUIRE(golden.losses.size() == kSteps);

  const Trained trained = Train(name, kind);

  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(trained.losses[step] == Approx(golden.losses[step]).epsilon(1e-4));
  }
  CHECK(trained.tensors.size() == golden.tensors.size());  // every name of the state dict, and no other
  for (const auto& [key, expected] : golden.tensors) {
    CAPTURE(key);
    REQUIRE(trained.tensors.count(key) == 1);
    CHECK(trained.tensors.at(key).first == Approx(expected.first).margin(2e-3 * (1 + expected.second)));
    CHECK(trained.tensors.at(key).second == Approx(expected.second).epsilon(1e-3));
  }
}

}  // namespace
}  // namespace lockstep::worker
