// Models that PyTorch exported train here as they trained there: the loss of every step and the weights at the end,
// from files that import_models.py makes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "common/graph/onnx/batch_use.h"
#include "tests/conformance/pytorch/imported_training.h"

namespace lockstep::worker {
namespace {

const std::string kFolder = "tests/conformance/pytorch/import/";

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

// "mlp_plain" and "mlp_older" are other exports of "mlp", with its data.
std::string ModelOf(const std::string& name) {
  for (const char* exporter : {"_plain", "_older"}) {
    if (absl::string_view base = name; absl::ConsumeSuffix(&base, exporter)) return std::string(base);
  }
  return name;
}

Golden ReadGoldenOf(const std::string& name) { return ReadGolden(kFolder + name); }

Training MakeTraining(const std::string& name, const Golden& golden, device::DeviceKind kind,
                      Recomputation recompute = Recomputation::kCheap, Precision precision = Precision::kFloat32) {
  OnnxImportOptions options;
  if (name == "gpt2") options.tied = {{"wte.weight", "lm_head.weight"}};
  return {kFolder + name, kFolder + ModelOf(name), options, golden, kind, recompute, precision};
}

Trained Train(const std::string& name, const Golden& golden, device::DeviceKind kind,
              Precision precision = Precision::kFloat32) {
  Training training = MakeTraining(name, golden, kind, Recomputation::kCheap, precision);
  return Train(training, golden);
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
  Training training = MakeTraining(name, golden, device::DeviceKind::kCpu);
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

  const auto gradients = FirstGradients(name, ReadGoldenOf(name));

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

TEST_CASE("import: no model of these computes with the number of samples in its batch", "[onnx][pytorch]") {
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".onnx") continue;
    CAPTURE(entry.path());
    OnnxImportOptions options;
    options.evaluate = device::EvaluateNode;
    const auto import_for = [&](int64_t batch) {
      options.batch = batch;
      return ImportOnnx(ReadOnnxFile(entry.path()).value(), options);
    };
    const auto model = import_for(4);
    if (!model.ok()) continue;  // a file for another batch alone
    for (const int64_t other : {5, 3}) {
      const auto of_other = import_for(other);
      if (!of_other.ok()) continue;
      CHECK(UseOfBatch(model->graph, 4, of_other->graph, other) == "");
      ++compared;
    }
  }
  CHECK(compared > 20);
}

// What other exports of the same models lose are names, not mathematics.
TEST_CASE("import: models of the plain call and of the older exporter train as in PyTorch", "[onnx][pytorch]") {
  const std::string name = GENERATE("mlp_plain", "mlp_older", "cnn_plain", "cnn_older", "attention_plain",
                                    "attention_older", "lstm_plain", "lstm_older", "encoder_plain", "llama_plain");
  CAPTURE(name);
  const Golden golden = ReadGoldenOf(name);
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
  const std::string name =
      GENERATE("mlp", "cnn", "attention", "resnet18", "mobilenetv2", "vgg11_bn", "gpt2", "bert", "vit", "llama",
               "llama_opset23", "encoder", "lstm", "decides", "loops", "sampled", "signal", "quantized");
  const auto kind = GENERATE(device::DeviceKind::kReference, device::DeviceKind::kCpu);
  const bool large = name == "resnet18" || name == "gpt2";  // minutes on the reference kernels
  if (large && kind == device::DeviceKind::kReference) return;
  // A ReLU whose input lies within rounding of zero takes one side there and the other here.
  const bool kinks = name == "resnet18";
  CAPTURE(name, kind == device::DeviceKind::kCpu);
  const Golden golden = ReadGoldenOf(name);
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
                                    "vit", "llama", "llama_opset23", "encoder", "lstm", "decides", "loops");
  CAPTURE(name);
  const Golden golden = ReadGoldenOf(name);
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
  const Golden golden = ReadGoldenOf(name);
  const Precision precision = name == "gpt2" ? Precision::kBf16 : Precision::kFloat32;
  Training kept = MakeTraining(name, golden, device::DeviceKind::kCpu, Recomputation::kNone, precision);
  Training again = MakeTraining(name, golden, device::DeviceKind::kCpu, Recomputation::kBlocks, precision);
  REQUIRE(again.arena() < kept.arena());

  for (int step = 1; step <= 2; ++step) CHECK(kept.Step(step) == again.Step(step));

  for (const std::string& tensor : kept.names()) {
    CAPTURE(tensor);
    CHECK(kept.Values(tensor) == again.Values(tensor));
  }
}

}  // namespace
}  // namespace lockstep::worker
