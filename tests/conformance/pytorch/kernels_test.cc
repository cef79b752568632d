// Which nodes of a model's training plan the CPU has no kernel of its own for: of the models that PyTorch exported, of
// small ones of the ops that stand around the large ones (kernel_models.py), and of the built-in architectures. The
// reference serves such a node, an element at a time.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/onnx/import.h"
#include "common/graph/passes/training_graph.h"
#include "worker/data/array_file.h"
#include "worker/device/choice/devices.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBatch = 8;
constexpr char kFolder[] = "tests/conformance/pytorch/";

// Ops that may run on the reference, each with the reason.
const std::map<std::string, std::string>& Allowed() {
  static const std::map<std::string, std::string> allowed = {
      {"LossWeights", "counts the labels of a shard: one number per sample, once a pass"},
  };
  return allowed;
}

// "<node> <op> reference" of the training plan on the CPU, without what is allowed.
std::vector<std::string> SlowNodes(const MetaGraph& metagraph) {
  const auto device = device::MakeDevice(device::DeviceKind::kCpu, {}).value();
  const auto training = MakeTrainingGraph(metagraph);
  INFO(training.status().ToString());
  REQUIRE(training.ok());
  const auto plan = Plan::Draft(device.get(), training->graph, {});
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  std::vector<std::string> slow;
  for (const PlannedStep& step : (*plan)->Describe()) {
    if (step.implementation == "reference" && !Allowed().contains(step.op)) slow.push_back(step.text);
  }
  return slow;
}

MetaGraph MustBuild(const MetaGraphRequest& request) {
  auto metagraph = BuildMetaGraph(request);
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  return *std::move(metagraph);
}

MetaGraphRequest RequestOf(const Shape& labels) {
  MetaGraphRequest request;
  request.inputs.push_back({"labels", "labels", InputRole::kLabel, DType::kI64, labels, {}});
  request.update.optimizer = {.kind = OptimizerKind::kSgd};
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = 0.1};
  request.pass_batch = kBatch;
  return request;
}

// The labels' shape of the file at `path`, which another exporter's name may follow; one class per sample where the
// model has no labels beside it.
Shape LabelsOf(const std::string& path) {
  for (const std::string suffix : {".onnx", "_plain.onnx", "_older.onnx"}) {
    const std::string labels = absl::StrCat(path.substr(0, path.size() - suffix.size()), ".labels.npy");
    if (!absl::EndsWith(path, suffix) || !std::filesystem::exists(labels)) continue;
    return ReadArrayFile(labels, job::DataFiles::FORMAT_NPY, int64_t{1} << 30).value().array.shape();
  }
  return {kBatch};
}

MetaGraph Imported(const std::string& path) {
  Shape labels = LabelsOf(path);
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.batch = labels[0];
  const auto model = ImportOnnx(ReadOnnxFile(path).value(), options);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  labels[0] = kBatchDim;
  MetaGraphRequest request = RequestOf(labels);
  request.pass_batch = options.batch;
  request.loss.ignore_index = -100;
  request.imported = model->graph;
  request.aliases = model->aliases;
  for (const GraphInput& input : model->graph.inputs) {
    request.inputs.push_back({input.name, input.name, InputRole::kFeature, input.dtype, input.shape, {}});
  }
  return MustBuild(request);
}

TEST_CASE("kernels: no node of a model from PyTorch falls to the reference on the cpu", "[pytorch]") {
  std::set<std::string> paths;
  for (const char* folder : {"import", "kernels", "random"}) {
    for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat(kFolder, folder))) {
      if (entry.path().extension() == ".onnx") paths.insert(entry.path());
    }
  }
  CHECK(paths.size() > 25);
  for (const std::string& path : paths) {
    INFO(path);
    CHECK(SlowNodes(Imported(path)) == std::vector<std::string>{});
  }
}

TEST_CASE("kernels: no node of a built-in architecture falls to the reference on the cpu", "[pytorch]") {
  const ModelSpec transformer{.layers = 2, .heads = 4, .width = 32, .context = 24, .vocabulary = 65, .patch = 4};
  const std::vector<std::pair<std::string, Shape>> models = {
      {"mlp", {12}},  {"lenet", {1, 28, 28}}, {"resnet18", {3, 48, 48}}, {"resnet50", {3, 48, 48}},
      {"gpt2", {16}}, {"bert", {16}},         {"vit", {3, 16, 16}}};
  for (const auto& [name, sample] : models) {
    INFO(name);
    ModelSpec model = transformer;
    model.architecture = name;
    if (name == "mlp") model.hidden_sizes = {16, 16};
    const bool tokens = sample.size() == 1 && name != "mlp";
    MetaGraphRequest request = RequestOf(name == "gpt2" ? Shape{kBatchDim, 16} : Shape{kBatchDim});
    Shape shape = {kBatchDim};
    shape.insert(shape.end(), sample.begin(), sample.end());
    request.inputs.push_back({"input", "input", InputRole::kFeature, tokens ? DType::kI64 : DType::kF32, shape, {}});
    request.model = model;
    CHECK(SlowNodes(MustBuild(request)) == std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace lockstep::worker
