// Trains a model that PyTorch exported, from files made by import_models.py and stated_models.py: one logical shard and
// one pass of all samples, so that nothing depends on an order.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_CONFORMANCE_PYTORCH_IMPORTED_TRAINING_H_
#define LOCKSTEP_TESTS_CONFORMANCE_PYTORCH_IMPORTED_TRAINING_H_

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/onnx/import.h"
#include "common/graph/training_account.h"
#include "tests/conformance/pytorch/example_source.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/data/array_file.h"
#include "worker/device/choice/devices.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

inline constexpr int kSteps = 20;

struct TensorFigures {
  double sum = 0;
  double norm = 0;
  double gradient_norm = 0;  // of the first step; 0 for running statistics
};

// The results of PyTorch's run.
struct Golden {
  double rate = 0;
  double smoothing = 0;
  std::vector<double> losses;
  std::map<std::string, TensorFigures> tensors;
};

// Reads the results of a model. `path`: without its ending, which all files of a model share.
inline Golden ReadGolden(const std::string& path) {
  Golden golden;
  std::ifstream file(path + ".losses.txt");
  INFO(path);
  REQUIRE(file.is_open());
  std::string word;
  file >> word >> golden.rate >> word >> golden.smoothing;
  for (int step = 0; step < kSteps; ++step) file >> golden.losses.emplace_back();
  REQUIRE(file.good());
  for (TensorFigures figures; file >> word >> figures.sum >> figures.norm >> figures.gradient_norm;) {
    golden.tensors[word] = figures;
  }
  return golden;
}

inline Tensor ReadArray(const std::string& path) {
  return std::move(ReadArrayFile(path, job::DataFiles::FORMAT_NPY, int64_t{1} << 30).value().array);
}

// Reads a batch. `data`: the path of its inputs and labels without their endings.
inline Example ReadExample(const std::string& data, size_t inputs) {
  Example example;
  for (size_t i = 0; i < inputs; ++i) {
    const std::string index = inputs > 1 ? "." + std::to_string(i) : "";
    example.inputs.push_back(ReadArray(data + ".inputs" + index + ".npy"));
  }
  example.labels = ReadArray(data + ".labels.npy");
  return example;
}

inline MetaGraph MakeMetaGraph(const ImportedModel& model, const Example& example, const Golden& golden,
                               Precision precision) {
  MetaGraphRequest request;
  request.imported = model.graph;
  request.aliases = model.aliases;
  request.frozen = model.notes.frozen;
  for (const GraphInput& input : model.graph.inputs) {
    request.inputs.push_back({input.name, input.name, InputRole::kFeature, input.dtype, input.shape, {}});
  }
  Shape labels = example.labels.shape();
  labels[0] = kBatchDim;
  request.inputs.push_back({"labels", "labels", InputRole::kLabel, DType::kI64, labels, {}});
  request.loss.ignore_index = -100;
  request.loss.label_smoothing = golden.smoothing;
  request.update.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0.9};
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = golden.rate};
  request.pass_batch = example.labels.shape()[0];
  request.precision = precision;
  const auto metagraph = BuildMetaGraph(request);
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  return *metagraph;
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, TensorFigures> tensors;
};

inline double NormOf(absl::Span<const float> elements) {
  double squares = 0;
  for (const float element : elements) squares += static_cast<double>(element) * element;
  return std::sqrt(squares);
}

// A model in training.
class Training {
 public:
  // `data`: as in ReadExample; `options`: how the job imports the model.
  Training(const std::string& path, const std::string& data, OnnxImportOptions options, const Golden& golden,
           device::DeviceKind kind, Recomputation recompute = Recomputation::kCheap,
           Precision precision = Precision::kFloat32) {
    options.evaluate = device::EvaluateNode;
    options.batch = ReadArray(data + ".labels.npy").shape()[0];
    auto model = ImportOnnx(ReadOnnxFile(path + ".onnx").value(), options);
    INFO(model.status().ToString());
    REQUIRE(model.ok());
    model_ = std::make_unique<ImportedModel>(*std::move(model));
    Example example = ReadExample(data, model_->graph.inputs.size());
    metagraph_ = MakeMetaGraph(*model_, example, golden, precision);
    data_ = std::make_unique<ExampleSource>(std::move(example), metagraph_);
    device_ = device::MakeDevice(kind, {}).value();
    state_ = ReplicaState::Create(MakeStateLayout(metagraph_), *device_).value();
    const auto of_model = [&](const std::string&, const std::string& tensor) -> absl::StatusOr<Tensor> {
      return model_->initial.at(tensor).Clone();
    };
    REQUIRE(state_->host().Load(MakeInitialState(metagraph_, 0, of_model).value()).ok());
    REQUIRE(state_->Store().ok());
    std::map<std::string, std::byte*> variables;
    for (const Variable& variable : metagraph_.forward.variables) {
      variables[variable.name] = state_->address(state_->layout().Find(variable.name));
    }
    StepConfig config{.metagraph = metagraph_,
                      .training = MakeTrainingGraph(metagraph_).value(),
                      .seed = 0,
                      .global_batch = options.batch,
                      .logical_shards = 1,
                      .device = device_.get()};
    plan_ = Plan::Make(device_.get(), config.training.graph, variables, {.recompute = recompute}).value();
    runner_ =
        StepRunner::Make(std::move(config), state_.get(), {.training = plan_.get()}, data_.get(), nullptr).value();
  }

  const ImportedModel& model() const { return *model_; }
  const MetaGraph& metagraph() const { return metagraph_; }
  int64_t arena() const { return plan_->memory().arena; }

  double Step(int step) {
    const auto result = runner_->RunStep(*communicators_[0], step, {});
    INFO(result.status().ToString());
    REQUIRE(result.ok());
    return result->record.loss;
  }

  // The names of the state dict, and a tensor's elements as floats.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const StateTensor& tensor : state_->layout().tensors) {
      if (tensor.group == StateGroup::kModel) names.push_back(tensor.spec.name);
    }
    return names;
  }
  std::vector<float> Values(const std::string& name) const {
    const int index = state_->layout().Find(name);
    const auto* elements = state_->host().tensor(index).data();
    const TensorSpec& spec = state_->layout().tensors[index].spec;
    const int64_t count = NumElements(spec.shape);
    if (spec.dtype == DType::kI64) {
      const auto* integers = reinterpret_cast<const int64_t*>(elements);
      return {integers, integers + count};
    }
    const auto* floats = reinterpret_cast<const float*>(elements);
    return {floats, floats + count};
  }

 private:
  std::unique_ptr<ImportedModel> model_;
  MetaGraph metagraph_;
  std::unique_ptr<ExampleSource> data_;
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<ReplicaState> state_;
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<std::unique_ptr<Communicator>> communicators_ = MakeLoopback({1, 1}, 1);
};

// Trains for kSteps steps.
inline Trained Train(Training& training, const Golden& golden) {
  Trained trained;
  std::map<std::string, std::vector<float>> before;
  for (const std::string& tensor : training.names()) before[tensor] = training.Values(tensor);
  for (int step = 1; step <= kSteps; ++step) {
    trained.losses.push_back(training.Step(step));
    if (step > 1) continue;
    for (auto& [tensor, moved] : before) {
      // The first step of momentum SGD is the gradient times the rate.
      const std::vector<float> values = training.Values(tensor);
      for (size_t i = 0; i < moved.size(); ++i) moved[i] -= values[i];
      trained.tensors[tensor].gradient_norm = NormOf(moved) / golden.rate;
    }
  }
  for (const std::string& tensor : training.names()) {
    const std::vector<float> values = training.Values(tensor);
    trained.tensors[tensor].norm = NormOf(values);
    for (const float value : values) trained.tensors[tensor].sum += value;
  }
  return trained;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONFORMANCE_PYTORCH_IMPORTED_TRAINING_H_
