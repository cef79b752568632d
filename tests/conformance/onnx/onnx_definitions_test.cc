// Ops for which the installed ONNX has no case: what its specification says, computed here, against the reference
// device.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

using Numbers = std::vector<double>;

struct Input {
  Shape shape;
  Numbers values;
};

// Different numbers of both signs, none zero.
Input Some(Shape shape, double phase) {
  Input input{std::move(shape), {}};
  for (int64_t i = 0; i < NumElements(input.shape); ++i) {
    input.values.push_back(std::sin(1.7 * static_cast<double>(i) + phase) + 0.01);
  }
  return input;
}

Numbers Run(OpType op, const OpAttributes& attributes, const std::vector<Input>& inputs) {
  Graph graph;
  Node node{"node", op, {}, {"y"}, attributes};
  for (const Input& input : inputs) {
    const std::string name = "x" + std::to_string(node.inputs.size());
    graph.inputs.push_back({name, DType::kF64, input.shape});
    graph.values[name] = {DType::kF64, input.shape};
    node.inputs.push_back(name);
  }
  REQUIRE(AppendNode(&graph, node).ok());
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(graph);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::memcpy(runner->value(node.inputs[i]).data(), inputs[i].values.data(),
                inputs[i].values.size() * sizeof(double));
  }
  REQUIRE(runner->Run().ok());
  const absl::Span<const double> values = runner->value("y").elements<double>();
  return Numbers(values.begin(), values.end());
}

void CheckNear(const Numbers& got, const Numbers& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - expected[i]) < 1e-12);
}

TEST_CASE("onnx definitions: Gelu and Mish", "[conformance]") {
  const Input x{{7}, {-9.0, -2.5, -0.5, 0.0, 0.3, 1.7, 30.0}};
  Numbers exact, approximate, mish;
  for (const double v : x.values) {
    exact.push_back(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
    approximate.push_back(0.5 * v * (1 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (v + 0.044715 * v * v * v))));
    mish.push_back(v * std::tanh(std::log1p(std::exp(v))));
  }

  CheckNear(Run(OpType::kGelu, GeluAttributes{false}, {x}), exact);
  CheckNear(Run(OpType::kGelu, GeluAttributes{true}, {x}), approximate);
  CheckNear(Run(OpType::kMish, NoAttributes{}, {x}), mish);
}

TEST_CASE("onnx definitions: RMSNormalization divides by the root of the mean square", "[conformance]") {
  const Input x = Some({3, 2, 2}, 0.1);
  const Input scale = Some({2, 2}, 0.2);

  Numbers expected;
  for (size_t row = 0; row < 3; ++row) {
    double squares = 0;
    for (size_t i = 0; i < 4; ++i) squares += x.values[4 * row + i] * x.values[4 * row + i];
    for (size_t i = 0; i < 4; ++i) {
      expected.push_back(x.values[4 * row + i] / std::sqrt(squares / 4 + 1e-3) * scale.values[i]);
    }
  }

  CheckNear(Run(OpType::kRmsNormalization, LayerNormAttributes{1, 1e-3}, {x, scale}), expected);
}

TEST_CASE("onnx definitions: GroupNormalization takes statistics over groups and scales channels", "[conformance]") {
  constexpr size_t kBatch = 2, kChannels = 6, kGroups = 3, kPlane = 5, kWidth = kChannels / kGroups * kPlane;
  const Input x = Some({kBatch, kChannels, kPlane}, 0.3);
  const Input scale = Some({kChannels}, 0.4);
  const Input bias = Some({kChannels}, 0.5);

  Numbers expected;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const size_t first = i / kWidth * kWidth;
    double mean = 0, square = 0;
    for (size_t j = first; j < first + kWidth; ++j) {
      mean += x.values[j] / kWidth;
      square += x.values[j] * x.values[j] / kWidth;
    }
    const size_t channel = i / kPlane % kChannels;
    expected.push_back((x.values[i] - mean) / std::sqrt(square - mean * mean + 1e-3) * scale.values[channel] +
                       bias.values[channel]);
  }

  CheckNear(Run(OpType::kGroupNormalization, GroupNormAttributes{kGroups, 1e-3}, {x, scale, bias}), expected);
}

TEST_CASE("onnx definitions: LpNormalization divides by the norm along its axis", "[conformance]") {
  const Input x = Some({2, 3, 4}, 0.6);
  for (const int64_t p : {1, 2}) {
    Numbers expected;
    for (size_t i = 0; i < x.values.size(); ++i) {
      double norm = 0;
      for (size_t j = 0; j < 3; ++j) norm += std::pow(std::abs(x.values[i / 12 * 12 + 4 * j + i % 4]), p);
      expected.push_back(x.values[i] / (p == 2 ? std::sqrt(norm) : norm));
    }

    CheckNear(Run(OpType::kLpNormalization, LpNormAttributes{1, p}, {x}), expected);
  }
}

}  // namespace
}  // namespace lockstep
