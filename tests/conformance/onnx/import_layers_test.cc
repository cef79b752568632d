// ONNX's rarer layers against their definitions, and their gradients against central differences, in float64. What the
// installed ONNX has cases for is in onnx_models_test, what PyTorch exports in import_training_test.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "common/graph/onnx/open_batch.h"
#include "common/graph/ops/resize.h"
#include "tests/conformance/onnx/one_node.h"
#include "tests/gradients/gradient_check.h"

namespace lockstep {
namespace {

Tensor Known(const std::vector<int64_t>& values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

std::vector<double> ElementsOf(const Tensor& tensor) {
  return {tensor.elements<double>().begin(), tensor.elements<double>().end()};
}

void CheckClose(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == Approx(expected[i]).margin(1e-9));
  }
}

// The gradients of the first inputs that are no part of the model; `values` are all of those, in order.
std::string GradientsOf(const OneNode& node, std::vector<const Tensor*> values, uint64_t seed, size_t targets = 9) {
  const auto model = node.Import(/*trainable=*/true);
  REQUIRE(model.ok());
  GradientCase test{.graph = model->graph};
  for (const Tensor* value : values) test.inputs.push_back(value->Clone());
  for (const GraphInput& input : model->graph.inputs) test.targets.push_back(input.name);
  test.targets.resize(std::min(targets, test.targets.size()));
  test.outputs = model->graph.outputs;
  return CheckGradients(std::move(test), seed);
}

OneNode Sampling(const Tensor& x, const Tensor& places, const char* mode, const char* padding, bool aligned) {
  OneNode node("GridSample");
  node.Input(&x);
  node.Input(&places);
  node.SetString("mode", mode);
  node.SetString("padding_mode", padding);
  node.Set("align_corners", aligned ? 1 : 0);
  return node;
}

}  // namespace

TEST_CASE("layers: CumProd is the product of what lies before, or behind", "[onnx]") {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    CaseNumbers dice(seed);
    const int64_t rows = dice.Int(1, 3), length = dice.Int(1, 9), columns = dice.Int(1, 3);
    const Tensor x = dice.Distinct({rows, length, columns});
    const bool exclusive = dice.Coin(), reverse = dice.Coin();
    OneNode node("CumProd");
    node.Input(&x);
    node.Known(Tensor::Of<int64_t>({}, {1}));
    node.Set("exclusive", exclusive ? 1 : 0);
    node.Set("reverse", reverse ? 1 : 0);
    std::vector<double> expected = ElementsOf(x);
    for (int64_t row = 0; row < rows * columns; ++row) {
      double product = 1;
      for (int64_t k = 0; k < length; ++k) {
        const int64_t i = reverse ? length - 1 - k : k;
        double& at = expected[static_cast<size_t>((row / columns * length + i) * columns + row % columns)];
        const double own = at;
        at = exclusive ? product : product * own;
        product *= own;
      }
    }

    CheckClose(node.Run().at("y0"), expected);
    CHECK(GradientsOf(node, {&x}, seed) == "");
  }
}

TEST_CASE("layers: CenterCropPad keeps the middle", "[onnx]") {
  Tensor x = Tensor::Zeros(DType::kF64, {5, 4});
  for (int64_t i = 0; i < 20; ++i) x.elements<double>()[i] = static_cast<double>(i + 1);
  OneNode node("CenterCropPad");
  node.Input(&x);
  node.Known(Known({2, 7}));
  CheckClose(node.Run().at("y0"), {0, 5, 6, 7, 8, 0, 0, 0, 9, 10, 11, 12, 0, 0});
  CHECK(GradientsOf(node, {&x}, 1) == "");
}

TEST_CASE("layers: what a division leaves has the sign of the divisor, or with fmod of the other", "[onnx]") {
  const Tensor a = Tensor::Of<double>({5}, {7.5, -7.5, 7.5, -7.5, 6});
  const Tensor b = Tensor::Of<double>({5}, {2, 2, -2, -2, -3});
  OneNode floor("Mod"), truncated("Mod");
  for (OneNode* node : {&floor, &truncated}) {
    node->Input(&a);
    node->Input(&b);
  }
  truncated.Set("fmod", 1);
  CheckClose(floor.Run().at("y0"), {1.5, 0.5, -0.5, -1.5, 0});
  CheckClose(truncated.Run().at("y0"), {1.5, -1.5, 1.5, -1.5, 0});
}

TEST_CASE("layers: volumes are sampled where an affine grid says, and gradients go through both", "[onnx]") {
  for (const char* const mode : {"linear", "nearest", "cubic"}) {
    for (const char* const padding : {"zeros", "border", "reflection"}) {
      for (const bool aligned : {false, true}) {
        CAPTURE(mode, padding, aligned);
        CaseNumbers dice(7);
        const Tensor x = dice.Distinct({2, 2, 3, 4, 2});
        OneNode grid("AffineGrid");
        // The same places, but with the last two dimensions of the second sample turned round.
        const Tensor theta =
            Tensor::Of<double>({2, 3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0});
        grid.Input(&theta);
        grid.Known(Known({2, 2, 3, 4, 2}));
        grid.Set("align_corners", aligned ? 1 : 0);
        const Tensor places = Tensor::Of<double>({2, 3, 4, 2, 3}, grid.Run().at("y0"));
        std::vector<double> expected = ElementsOf(x);
        for (size_t plane = 6; plane < 12; ++plane) {
          std::reverse(expected.begin() + static_cast<int64_t>(plane * 8),
                       expected.begin() + static_cast<int64_t>(plane * 8 + 8));
        }

        CheckClose(Sampling(x, places, mode, padding, aligned).Run().at("y0"), expected);

        // Elsewhere, also far outside; between the kinks.
        Tensor anywhere = dice.Distinct({2, 2, 1, 2, 3});
        for (double& coordinate : anywhere.elements<double>()) coordinate *= 2.2;
        const OneNode moved = Sampling(x, anywhere, mode, padding, aligned);
        // The nearest element stays the same where the place moves a little.
        CHECK(GradientsOf(moved, {&x, &anywhere}, 3, mode == std::string("nearest") ? 1 : 2) == "");
      }
    }
  }
}

TEST_CASE("layers: places outside of an image are mirrored at its border, as often as it takes", "[onnx]") {
  const Tensor x = Tensor::Of<double>({1, 1, 1, 4}, {10, 20, 30, 40});
  for (const bool aligned : {false, true}) {
    CAPTURE(aligned);
    std::vector<double> grid;
    for (const double place : {-1.0, -2.0, 4.0, 5.0, -5.0, 9.0}) {
      grid.push_back(aligned ? place / 1.5 - 1 : (2 * place + 1) / 4 - 1);
      grid.push_back(0);
    }
    const Tensor places = Tensor::Of<double>({1, 1, 6, 2}, grid);
    const OneNode node = Sampling(x, places, "linear", "reflection", aligned);
    // Through the middle of the first and last element, or along their outer sides.
    const std::vector<double> through = {20, 30, 30, 20, 20, 40}, along = {10, 20, 40, 30, 40, 20};
    CheckClose(node.Run().at("y0"), aligned ? through : along);
  }
}

TEST_CASE("layers: resizing keeps constants, and a line where no border is near", "[onnx]") {
  for (const char* const coordinates : {"half_pixel", "half_pixel_symmetric", "asymmetric", "align_corners"}) {
    for (const bool antialias : {false, true}) {
      for (const int64_t size : {5, 16, 29}) {
        CAPTURE(coordinates, antialias, size);
        Tensor x = Tensor::Zeros(DType::kF64, {2, 16, 3});
        for (int64_t i = 0; i < 96; ++i) x.elements<double>()[i] = i < 48 ? 4 : static_cast<double>(i % 48 / 3);
        OneNode node("Resize");
        node.Input(&x);
        node.Input(nullptr);
        node.Input(nullptr);
        node.Known(Known({2, size, 3}));
        node.SetString("mode", "cubic");
        node.SetFloat("cubic_coeff_a", -0.5);  // with which lines stay lines
        node.SetString("coordinate_transformation_mode", coordinates);
        node.Set("antialias", antialias ? 1 : 0);
        const std::vector<double> y = node.Run().at("y0");
        REQUIRE(y.size() == static_cast<size_t>(6 * size));
        for (int64_t i = 0; i < 3 * size; ++i) CHECK(y[static_cast<size_t>(i)] == Approx(4));
        const double scale = static_cast<double>(size) / 16;
        for (int64_t i = size / 3; i < 2 * size / 3; ++i) {
          double place = (static_cast<double>(i) + 0.5) / scale - 0.5;
          if (coordinates == std::string("asymmetric")) place = static_cast<double>(i) / scale;
          if (coordinates == std::string("align_corners"))
            place = static_cast<double>(i * 15) / static_cast<double>(size - 1);
          CHECK(y[static_cast<size_t>(3 * size + 3 * i)] ==
                Approx(place).epsilon(antialias && size < 16 ? 0.02 : 1e-9));
        }
        CHECK(GradientsOf(node, {&x}, 5) == "");
      }
    }
  }
}

// PyTorch writes the batch of the export among the sizes.
TEST_CASE("layers: sizes that name the batch hold for every batch", "[onnx]") {
  for (const char* const mode : {"linear", "nearest", "cubic"}) {
    CAPTURE(mode);
    const Tensor x = Tensor::Zeros(DType::kF64, {2, 3, 4, 5});
    OneNode node("Resize");
    node.Input(&x);
    node.Input(nullptr);
    node.Input(nullptr);
    node.Known(Known({2, 3, 8, 7}));
    node.SetString("mode", mode);
    auto model = node.Import();
    REQUIRE(model.ok());
    model->graph.inputs[0].shape[0] = kBatchDim;
    const auto opening = OpenBatch(model->graph, 2);
    REQUIRE(opening.ok());
    CHECK(opening->open);
    CHECK(opening->shapes.at(model->graph.outputs[0]) == Shape{kBatchDim, 3, 8, 7});
  }
  Graph graph;
  AppendInput(&graph, {"x", DType::kF32, {kBatchDim, 3, 4, 5}});
  graph.nodes.push_back({"resize", OpType::kResize, {"x"}, {"y"}, ResizeAttributes{.sizes = {2, 3, 8, 7}}});
  graph.outputs = {"y"};
  const auto fixed = OpenBatch(graph, 2);
  REQUIRE(fixed.ok());
  CHECK_FALSE(fixed->open);  // another batch would become one of two samples
}

TEST_CASE("layers: a transform of a transform is the signal again", "[onnx]") {
  for (const int64_t length : {1, 2, 7, 8}) {
    CAPTURE(length);
    CaseNumbers dice(static_cast<uint64_t>(length));
    const Tensor real = dice.Uniform({2, length, 3, 1});
    OneNode forward("DFT");
    forward.Input(&real);
    forward.Input(nullptr);
    forward.Known(Tensor::Of<int64_t>({}, {1}));
    forward.Set("onesided", 1);
    const Tensor half = Tensor::Of<double>({2, length / 2 + 1, 3, 2}, forward.Run().at("y0"));
    OneNode backward("DFT");
    backward.Input(&half);
    backward.Known(Tensor::Of<int64_t>({}, {length}));
    backward.Known(Tensor::Of<int64_t>({}, {1}));
    backward.Set("onesided", 1);
    backward.Set("inverse", 1);
    CheckClose(backward.Run().at("y0"), ElementsOf(real));
    CHECK(GradientsOf(forward, {&real}, 1) == "");
    CHECK(GradientsOf(backward, {&half}, 1) == "");
  }
}

}  // namespace lockstep
