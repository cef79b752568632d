// Models that PyTorch exported train here as they trained there: the loss of every step and the weights at the end,
// from files that import_models.py makes. One logical shard and one pass of all samples, so that nothing depends on an
// order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "common/graph/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/onnx/import.h"
#include "tests/conformance/pytorch/example_source.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/data/array_file.h"
#include "worker/device/devices.h"
#include "worker/device/evaluate_node.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

constexpr int kSteps = 20;
const std::string kFolder = "tests/conformance/pytorch/import/";

struct TensorFigures {
  double sum = 0;
  double norm = 0;
  double gradient_norm = 0;  // of the first step; 0 for statistics
};

// What PyTorch's run left.
struct Golden {
  double rate = 0;
  double smoothing = 0;
  std::vector<double> losses;
  std::map<std::string, TensorFigures> tensors;
};

Golden ReadGolden(const std::string& name) {
  Golden golden;
  std::ifstream file(kFolder + name + ".losses.txt");
  std::string word;
  file >> word >> golden.rate >> word >> golden.smoothing;
  for (int step = 0; step < kSteps; ++step) file >> golden.losses.emplace_back();
  for (TensorFigures figures; file >> word >> figures.sum >> figures.norm >> figures.gradient_norm;) {
    golden.tensors[word] = figures;
  }
  return golden;
}

// The same training with autocast.
struct GoldenBf16 {
  std::vector<double> losses;
  std::map<std::string, double> gradient_norms;  // of the first step
};

GoldenBf16 ReadGoldenBf16(const std::string& name) {
  GoldenBf16 golden;
  std::ifstream file(kFolder + name + ".bf16.txt");
  for (int step = 0; step < kSteps; ++step) file >> golden.losses.emplace_back();
  std::string tensor;
  for (double norm = 0; file >> tensor >> norm;) golden.gradient_norms[tensor] = norm;
  return golden;
}

Tensor ReadArray(const std::string& path) {
  return std::move(ReadArrayFile(path, job::DataFiles::FORMAT_NPY, int64_t{1} << 30).value().array);
}

// "mlp_plain" and "mlp_older" are other exports of "mlp", with its data.
std::string ModelOf(const std::string& name) {
  for (const char* exporter : {"_plain", "_older"}) {
    if (absl::string_view base = name; absl::ConsumeSuffix(&base, exporter)) return std::string(base);
  }
  return name;
}

Example ReadExample(const std::string& name, size_t inputs) {
  Example example;
  for (size_t i = 0; i < inputs; ++i) {
    const std::string index = inputs > 1 ? "." + std::to_string(i) : "";
    example.inputs.push_back(ReadArray(kFolder + ModelOf(name) + ".inputs" + index + ".npy"));
  }
  example.labels = ReadArray(kFolder + ModelOf(name) + ".labels.npy");
  return example;
}

MetaGraph MakeMetaGraph(const ImportedModel& model, const Example& example, const Golden& golden, Precision precision) {
  MetaGraphRequest request;
  request.imported = model.graph;
  request.aliases = model.aliases;
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

double NormOf(absl::Span<const float> elements) {
  double squares = 0;
  for (const float element : elements) squares += static_cast<double>(element) * element;
  return std::sqrt(squares);
}

// The state of a model while it trains.
class Training {
 public:
  Training(const std::string& name, const Golden& golden, device::DeviceKind kind,
           Recomputation recompute = Recomputation::kCheap, Precision precision = Precision::kFloat32) {
    OnnxImportOptions options;
    options.evaluate = device::EvaluateNode;
    options.batch = ReadArray(kFolder + ModelOf(name) + ".labels.npy").shape()[0];
    if (name == "gpt2") options.tied = {{"wte.weight", "lm_head.weight"}};
    auto model = ImportOnnx(ReadOnnxFile(kFolder + name + ".onnx").value(), options);
    INFO(model.status().ToString());
    REQUIRE(model.ok());
    model_ = std::make_unique<ImportedModel>(*std::move(model));
    Example example = ReadExample(name, model_->graph.inputs.size());
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
    runner_ = StepRunner::Make(std::move(config), state_.get(), plan_.get(), nullptr, data_.get(), nullptr).value();
  }

  int64_t arena() const { return plan_->memory().arena; }

  double Step(int step) {
    const auto result = runner_->RunStep(*communicators_[0], step, {});
    INFO(result.status().ToString());
    REQUIRE(result.ok());
    return result->record.loss;
  }

  // The state dict: its names, and a tensor's elements as floats.
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

Trained Train(const std::string& name, const Golden& golden, device::DeviceKind kind,
              Precision precision = Precision::kFloat32) {
  Training training(name, golden, kind, Recomputation::kCheap, precision);
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

// What PyTorch says of the gradients of the first step: every element, in units of the largest of its tensor / 32767.
struct GoldenGradient {
  double largest = 0;
  std::vector<int16_t> elements;
};

std::map<std::string, GoldenGradient> ReadGradients(const std::string& name) {
  const Tensor all = ReadArray(kFolder + name + ".gradients.npy");
  const absl::Span<const int16_t> elements = all.elements<int16_t>();
  std::map<std::string, GoldenGradient> gradients;
  std::ifstream file(kFolder + name + ".gradients.txt");
  std::string tensor;
  size_t count = 0, at = 0;
  for (double largest = 0; file >> tensor >> count >> largest; at += count) {
    const absl::Span<const int16_t> part = elements.subspan(at, count);
    gradients[tensor] = {largest, {part.begin(), part.end()}};
  }
  REQUIRE(at == elements.size());
  return gradients;
}

// The gradient of every parameter in the first step: with a rate of 1 it is what the step takes away.
std::map<std::string, std::vector<float>> FirstGradients(const std::string& name, Golden golden) {
  golden.rate = 1;
  Training training(name, golden, device::DeviceKind::kCpu);
  std::map<std::string, std::vector<float>> gradients;
  for (const std::string& tensor : training.names()) gradients[tensor] = training.Values(tensor);
  training.Step(1);
  for (auto& [tensor, moved] : gradients) {
    const std::vector<float> values = training.Values(tensor);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= values[i];
  }
  return gradients;
}

// How far an element may lie from PyTorch's, in parts of the largest element of its tensor. The golden numbers are
// rounded to 1.5e-5 of it, and both sides compute in float32: each layer that a gradient goes through adds some 1e-6 of
// its largest elements. Only where ReLUs have kinks a sample's part may be missing as a whole: an input that rounds to
// the other side of zero turns a unit off, and convolutions spread that over the layers below.
double ToleranceOf(const std::string& name) { return name == "resnet18" ? 2e-2 : 1e-4; }

TEST_CASE("import: every element of every first gradient is PyTorch's", "[onnx][pytorch]") {
  const std::string name = GENERATE("mlp", "resnet18", "gpt2", "bert");
  CAPTURE(name);
  const std::map<std::string, GoldenGradient> golden = ReadGradients(name);
  REQUIRE(golden.size() > 3);

  const auto gradients = FirstGradients(name, ReadGolden(name));

  for (const auto& [tensor, expected] : golden) {
    CAPTURE(tensor);
    REQUIRE(gradients.count(tensor) == 1);
    const std::vector<float>& found = gradients.at(tensor);
    REQUIRE(found.size() == expected.elements.size());
    double worst = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      worst = std::max(worst, std::abs(found[i] - expected.elements[i] * expected.largest / 32767));
    }
    // The step rounds the weight that the gradient is taken from: a few 1e-7.
    CHECK(worst <= ToleranceOf(name) * expected.largest + 1e-6);
  }
}

// What other exports of the same models lose are names, not mathematics.
TEST_CASE("import: models of the plain call and of the older exporter train as in PyTorch", "[onnx][pytorch]") {
  const std::string name = GENERATE("mlp_plain", "mlp_older", "cnn_plain", "cnn_older", "attention_plain",
                                    "attention_older", "lstm_plain", "lstm_older", "encoder_plain", "llama_plain");
  CAPTURE(name);
  const Golden golden = ReadGolden(name);
  REQUIRE(golden.losses.size() == kSteps);

  const Trained trained = Train(name, golden, device::DeviceKind::kCpu);

  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(trained.losses[step] == Approx(golden.losses[step]).epsilon(1e-3).margin(1e-5));
  }
  size_t same = 0;
  for (const auto& [key, expected] : golden.tensors) {
    const auto found = trained.tensors.find(key);
    if (found == trained.tensors.end()) continue;
    CAPTURE(key);
    ++same;
    CHECK(found->second.norm == Approx(expected.norm).epsilon(2e-3).margin(1e-6));
  }
  // The older exporter keeps every name, the plain call some.
  const bool older = ModelOf(name) + "_older" == name;
  CHECK((older ? same == golden.tensors.size() : same > 0));
}

TEST_CASE("import: exported models train as PyTorch trains them", "[onnx][pytorch]") {
  const std::string name = GENERATE("mlp", "cnn", "attention", "resnet18", "mobilenetv2", "vgg11_bn", "gpt2", "bert",
                                    "vit", "llama", "llama_opset23", "encoder", "lstm");
  const auto kind = GENERATE(device::DeviceKind::kReference, device::DeviceKind::kCpu);
  const bool large = name == "resnet18" || name == "gpt2";  // minutes on the reference kernels
  if (large && kind == device::DeviceKind::kReference) return;
  // A ReLU whose input lies within rounding of zero takes one side there and the other here.
  const bool kinks = name == "resnet18";
  CAPTURE(name, kind == device::DeviceKind::kCpu);
  const Golden golden = ReadGolden(name);
  REQUIRE(golden.losses.size() == kSteps);

  const Trained trained = Train(name, golden, kind);

  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(trained.losses[step] == Approx(golden.losses[step]).epsilon(kinks ? 1e-2 : 1e-3).margin(1e-5));
  }
  for (const auto& [key, expected] : golden.tensors) {
    CAPTURE(key);
    REQUIRE(trained.tensors.count(key) == 1);
    const TensorFigures& figures = trained.tensors.at(key);
    CHECK(figures.sum == Approx(expected.sum).margin((kinks ? 3e-2 : 2e-3) * (1 + expected.norm)));
    CHECK(figures.norm == Approx(expected.norm).epsilon(2e-3).margin(kinks ? 3e-2 : 1e-6));
    if (expected.gradient_norm == 0) continue;  // a statistic, a buffer, a count
    CHECK(figures.gradient_norm == Approx(expected.gradient_norm).epsilon(1e-2).margin(1e-4));
  }
  CHECK(trained.tensors.size() == golden.tensors.size());  // every name of the state dict, and no other
}

// Both round, at other places: what counts is that training here is not further from float32 than there.
TEST_CASE("import: exported models train with bf16 as near to float32 as PyTorch's autocast", "[onnx][pytorch]") {
  const std::string name = GENERATE("mlp", "cnn", "attention", "resnet18", "mobilenetv2", "vgg11_bn", "gpt2", "bert",
                                    "vit", "llama", "llama_opset23", "encoder", "lstm");
  CAPTURE(name);
  const Golden golden = ReadGolden(name);
  const GoldenBf16 autocast = ReadGoldenBf16(name);
  REQUIRE(autocast.losses.size() == kSteps);
  REQUIRE(autocast.gradient_norms.size() > 3);

  const Trained trained = Train(name, golden, device::DeviceKind::kCpu, Precision::kBf16);

  CHECK(trained.losses != Train(name, golden, device::DeviceKind::kCpu).losses);
  double theirs = 0, largest = 0;
  for (int step = 0; step < kSteps; ++step) {
    theirs = std::max(theirs, std::abs(autocast.losses[step] - golden.losses[step]));
  }
  // Where a loss falls steeply, what was rounded otherwise on another processor shows as a share of a step.
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    const double margin = step < 5 ? 2 * theirs + 2e-3 : 4 * theirs + 1e-2;
    CHECK(trained.losses[step] == Approx(golden.losses[step]).margin(margin));
  }
  for (const auto& [key, figures] : golden.tensors) largest = std::max(largest, figures.gradient_norm);
  for (const auto& [key, norm] : autocast.gradient_norms) {
    CAPTURE(key);
    const double exact = golden.tensors.at(key).gradient_norm;
    CHECK(trained.tensors.at(key).gradient_norm ==
          Approx(exact).epsilon(0.04).margin(2 * std::abs(norm - exact) + 2e-3 * largest));
  }
}

TEST_CASE("import: computing blocks again gives the same bits", "[onnx][pytorch]") {
  const std::string name = GENERATE("resnet18", "mobilenetv2", "gpt2", "bert", "llama", "lstm");
  CAPTURE(name);
  const Golden golden = ReadGolden(name);
  const Precision precision = name == "gpt2" ? Precision::kBf16 : Precision::kFloat32;
  Training kept(name, golden, device::DeviceKind::kCpu, Recomputation::kNone, precision);
  Training again(name, golden, device::DeviceKind::kCpu, Recomputation::kBlocks, precision);
  REQUIRE(again.arena() < kept.arena());

  for (int step = 1; step <= 2; ++step) CHECK(kept.Step(step) == again.Step(step));

  for (const std::string& tensor : kept.names()) {
    CAPTURE(tensor);
    CHECK(kept.Values(tensor) == again.Values(tensor));
  }
}

}  // namespace
}  // namespace lockstep::worker
