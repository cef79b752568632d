// What ONNX leaves open about integers and casts, and the op set's headers promise: on the reference device.
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

// One op over vectors of equal length.
template <typename Result, typename... Operand>
std::vector<Result> Run(OpType op, const OpAttributes& attributes, const std::vector<Operand>&... operands) {
  Graph graph;
  Node node{"node", op, {}, {"y"}, attributes};
  std::vector<Tensor> tensors;
  (tensors.push_back(Tensor::Of<Operand>({static_cast<int64_t>(operands.size())}, operands)), ...);
  for (const Tensor& tensor : tensors) {
    node.inputs.push_back("x" + std::to_string(node.inputs.size()));
    graph.inputs.push_back({node.inputs.back(), tensor.dtype(), tensor.shape()});
    graph.values[node.inputs.back()] = {tensor.dtype(), tensor.shape()};
  }
  REQUIRE(AppendNode(&graph, node).ok());
  const std::unique_ptr<GraphRunner> runner = *GraphRunner::Make(graph);
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::memcpy(runner->value(node.inputs[i]).data(), tensors[i].data(), tensors[i].bytes().size());
  }
  REQUIRE(runner->Run().ok());
  const absl::Span<const Result> values = runner->value("y").template elements<Result>();
  return std::vector<Result>(values.begin(), values.end());
}

template <typename T>
constexpr T kLowest = std::numeric_limits<T>::min();
template <typename T>
constexpr T kMost = std::numeric_limits<T>::max();

template <typename T>
void CheckArithmetic() {
  using V = std::vector<T>;
  const T low = kLowest<T>, most = kMost<T>, minus = static_cast<T>(-1);

  CHECK(Run<T>(OpType::kAdd, {}, V{most, 5}, V{1, 6}) == V{low, 11});
  CHECK(Run<T>(OpType::kSub, {}, V{low, 9}, V{1, 4}) == V{most, 5});
  CHECK(Run<T>(OpType::kMul, {}, V{most, 3}, V{2, 4}) == V{static_cast<T>(-2), 12});
  CHECK(Run<T>(OpType::kDiv, {}, V{low, 7, 7, static_cast<T>(-7)}, V{minus, 0, 2, 2}) ==
        V{low, 0, 3, static_cast<T>(-3)});
  CHECK(Run<T>(OpType::kNeg, {}, V{low, 3}) == V{low, static_cast<T>(-3)});
  CHECK(Run<T>(OpType::kAbs, {}, V{low, minus, 0}) == V{low, 1, 0});
  CHECK(Run<T>(OpType::kSign, {}, V{low, 0, most}) == V{minus, 0, 1});
  CHECK(Run<T>(OpType::kMod, ModAttributes{false}, V{low, 7, static_cast<T>(-7), 7},
               V{minus, 0, 4, static_cast<T>(-4)}) == V{0, 0, 1, minus});
  CHECK(Run<T>(OpType::kMod, ModAttributes{true}, V{low, 7, static_cast<T>(-7), 7},
               V{minus, 0, 4, static_cast<T>(-4)}) == V{0, 0, static_cast<T>(-3), 3});
  CHECK(Run<T>(OpType::kClip, ClipAttributes{-2.0, 1e300}, V{low, 0, most}) == V{static_cast<T>(-2), 0, most});
}

TEST_CASE("integers: they wrap around, and nothing divides by zero", "[conformance]") {
  CheckArithmetic<int8_t>();
  CheckArithmetic<int32_t>();
  CheckArithmetic<int64_t>();
  using U = std::vector<uint8_t>;
  CHECK(Run<uint8_t>(OpType::kSub, {}, U{3}, U{5}) == U{254});
  CHECK(Run<uint8_t>(OpType::kDiv, {}, U{200, 9}, U{255, 0}) == U{0, 0});
  CHECK(Run<uint8_t>(OpType::kMod, ModAttributes{false}, U{200, 9}, U{255, 0}) == U{200, 0});
}

TEST_CASE("integers: powers", "[conformance]") {
  using I = std::vector<int32_t>;
  CHECK(Run<int32_t>(OpType::kPow, {}, I{3, -2, 2, 0, 1, -1, 2, 0}, I{4, 3, 31, 0, -5, -3, -1, -2}) ==
        I{81, -8, kLowest<int32_t>, 1, 1, -1, 0, 0});
  CHECK(Run<int32_t>(OpType::kPow, {}, I{3, 2, 10, -4}, std::vector<float>{6.0f, 0.5f, 20.5f, 0.5f}) ==
        I{729, 1, kMost<int32_t>, 0});
}

TEST_CASE("casts: what does not fit comes to the nearest, integers keep their low bits", "[conformance]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1.9f, -1.9f, 3e9f, -3e9f, infinity, std::numeric_limits<float>::quiet_NaN()};
  CHECK(Run<int32_t>(OpType::kCast, CastAttributes{DType::kI32}, x) ==
        std::vector<int32_t>{1, -1, kMost<int32_t>, kLowest<int32_t>, kMost<int32_t>, 0});
  CHECK(Run<uint8_t>(OpType::kCast, CastAttributes{DType::kU8}, x) == std::vector<uint8_t>{1, 0, 255, 0, 255, 0});
  CHECK(Run<int64_t>(OpType::kCast, CastAttributes{DType::kI64}, std::vector<double>{1e19, -1e19}) ==
        std::vector<int64_t>{kMost<int64_t>, kLowest<int64_t>});
  CHECK(Run<int8_t>(OpType::kCast, CastAttributes{DType::kI8}, std::vector<int64_t>{300, -129, 127}) ==
        std::vector<int8_t>{44, 127, 127});
  CHECK(Run<float>(OpType::kCast, CastAttributes{DType::kF32}, std::vector<uint8_t>{0, 255}) ==
        std::vector<float>{0.0f, 255.0f});
}

}  // namespace
}  // namespace lockstep
