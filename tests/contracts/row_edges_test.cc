// What walks along rows, at the edges of numbers: integers that wrap around, NaN, infinities, rows without elements.
// The CUDA device in host execution and the CPU against the reference.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

using Tensors = std::vector<Tensor>;

// The device that is held against the reference; each test sets it.
TestedDevice tested = TestedDevice::kCudaOnHost;

// The outputs of one node on the reference and on the tested device.
std::pair<NamedTensors, NamedTensors> RunBoth(OpType op, const OpAttributes& attributes, const Tensors& inputs,
                                              int outputs = 1) {
  const auto run = [&](TestedDevice which) {
    Tensors copies;
    for (const Tensor& input : inputs) {
      copies.push_back(Tensor::Zeros(input.dtype(), input.shape()));
      std::copy(input.bytes().begin(), input.bytes().end(), copies.back().data());
    }
    const auto device = MakeTestedDevice(which);
    return RunOneNode(*device, op, attributes, std::move(copies), outputs);
  };
  return {run(TestedDevice::kReference), run(tested)};
}

void CheckSameBytes(OpType op, const OpAttributes& attributes, const Tensors& inputs, int outputs = 1) {
  INFO(OpName(op));
  const auto [expected, got] = RunBoth(op, attributes, inputs, outputs);
  for (const auto& [name, tensor] : expected) {
    const auto& other = got.at(name);
    CHECK(std::vector<std::byte>(tensor.bytes().begin(), tensor.bytes().end()) ==
          std::vector<std::byte>(other.bytes().begin(), other.bytes().end()));
  }
}

// NaN where the reference has NaN, the same infinities, and nearly the same numbers.
void CheckSameKinds(OpType op, const OpAttributes& attributes, const Tensors& inputs, int outputs = 1) {
  INFO(OpName(op));
  const auto [expected, got] = RunBoth(op, attributes, inputs, outputs);
  for (const auto& [name, tensor] : expected) {
    const auto reference = tensor.elements<float>();
    const auto values = got.at(name).elements<float>();
    for (size_t i = 0; i < reference.size(); ++i) {
      CAPTURE(name, i, reference[i], values[i]);
      if (std::isnan(reference[i]) || std::isinf(reference[i])) {
        CHECK((values[i] == reference[i] || (std::isnan(values[i]) && std::isnan(reference[i]))));
      } else {
        CHECK(values[i] == Approx(reference[i]).margin(1e-6));
      }
    }
  }
}

template <typename T>
void CheckIntegers() {
  constexpr T kMost = std::numeric_limits<T>::max();
  constexpr T kLowest = std::numeric_limits<T>::min();
  std::vector<T> values;
  for (int i = 0; i < 4 * 70 * 3; ++i) {
    values.push_back(i % 7 == 0 ? kMost : i % 11 == 0 ? kLowest : static_cast<T>(i * 37 % 50));
  }
  const auto x = [&] { return Tensor::Of<T>({4, 70, 3}, values); };
  for (const std::vector<int64_t>& axes : {std::vector<int64_t>{}, {1}, {0, 2}, {2}}) {
    for (const OpType op : {OpType::kReduceSum, OpType::kReduceMean, OpType::kReduceMax, OpType::kReduceMin,
                            OpType::kReduceProd, OpType::kReduceL1, OpType::kReduceSumSquare}) {
      Tensors inputs;
      inputs.push_back(x());
      CheckSameBytes(op, ReduceAttributes{.axes = axes}, inputs);
    }
  }
  for (const int64_t axis : {0, 1, 2}) {
    Tensors inputs;
    inputs.push_back(x());
    for (const bool flag : {false, true}) {
      CheckSameBytes(OpType::kArgMax, ArgAttributes{axis, true, flag}, inputs);
      CheckSameBytes(OpType::kArgMin, ArgAttributes{axis, true, flag}, inputs);
      CheckSameBytes(OpType::kTopK, TopKAttributes{.k = 3, .axis = axis, .largest = flag}, inputs, 2);
      CheckSameBytes(OpType::kCumSum, CumSumAttributes{axis, flag, !flag}, inputs);
    }
  }
}

TEST_CASE("row edges: integers of every type wrap around in reductions, rankings and running sums", "[cuda]") {
  tested = GENERATE(TestedDevice::kCudaOnHost, TestedDevice::kCpu);
  CheckIntegers<int64_t>();
  CheckIntegers<int32_t>();
  CheckIntegers<int8_t>();
  CheckIntegers<uint8_t>();
}

TEST_CASE("row edges: NaN and infinities spread as in the reference", "[cuda]") {
  tested = GENERATE(TestedDevice::kCudaOnHost, TestedDevice::kCpu);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  // Rows of 40, so that threads share them; one kind of trouble in each.
  const std::vector<std::vector<std::pair<size_t, float>>> troubles = {
      {}, {{3, nan}}, {{5, kInfinity}}, {{0, -kInfinity}, {39, -kInfinity}}, {{7, kInfinity}, {8, -kInfinity}}};
  std::vector<float> values;
  for (const auto& trouble : troubles) {
    std::vector<float> row(40);
    for (size_t i = 0; i < row.size(); ++i) row[i] = 0.1f * static_cast<float>(i % 9) - 0.3f;
    for (const auto& [i, value] : trouble) row[i] = value;
    values.insert(values.end(), row.begin(), row.end());
  }
  values.insert(values.end(), 40, -kInfinity);
  Tensors inputs;
  inputs.push_back(Tensor::Of<float>({6, 40}, values));
  for (const OpType op : {OpType::kSoftmax, OpType::kLogSoftmax}) CheckSameKinds(op, SoftmaxAttributes{1}, inputs);
  for (const OpType op : {OpType::kReduceSum, OpType::kReduceMax, OpType::kReduceMin, OpType::kReduceL1,
                          OpType::kReduceSumSquare, OpType::kReduceLogSumExp}) {
    CheckSameKinds(op, ReduceAttributes{.axes = {1}}, inputs);
  }
  CheckSameKinds(OpType::kCumSum, CumSumAttributes{1}, inputs);
  for (const bool flag : {false, true}) {
    CheckSameBytes(OpType::kArgMax, ArgAttributes{1, true, flag}, inputs);
    CheckSameBytes(OpType::kArgMin, ArgAttributes{1, true, flag}, inputs);
    CheckSameBytes(OpType::kTopK, TopKAttributes{.k = 9, .axis = 1, .largest = flag}, inputs, 2);
    CheckSameBytes(OpType::kTopK, TopKAttributes{.k = 2, .axis = 0, .largest = flag}, inputs, 2);
    CheckSameBytes(OpType::kArgMax, ArgAttributes{0, true, flag}, inputs);
    CheckSameBytes(OpType::kArgMin, ArgAttributes{0, true, flag}, inputs);
  }
  // Labels beside the trouble, at it, and outside.
  inputs.push_back(Tensor::Of<int32_t>({6}, {1, 2, 5, 0, 40, 3}));
  CheckSameKinds(OpType::kSoftmaxCrossEntropyLoss, CrossEntropyAttributes{.reduction = Reduction::kNone}, inputs, 2);
  inputs.push_back(Tensor::Of<float>({6}, {1, 1, 1, 1, 1, 1}));
  CheckSameBytes(OpType::kCountCorrect, CountCorrectAttributes{}, inputs, 3);
}

// With a ReLU behind the node, which the tested device fuses.
void CheckReluKeepsNaN(OpType op, const OpAttributes& attributes, const Tensors& inputs) {
  INFO(OpName(op));
  const auto run = [&](TestedDevice which, device::Epilogue epilogue) {
    Tensors copies;
    for (const Tensor& input : inputs) copies.push_back(input.Clone());
    const auto device = MakeTestedDevice(which);
    return std::move(RunOneNode(*device, op, attributes, std::move(copies), 1, epilogue).at("y0"));
  };
  const Tensor expected = run(TestedDevice::kReference, device::Epilogue::kNone);
  const Tensor got = run(tested, device::Epilogue::kRelu);
  size_t undefined = 0;
  for (size_t i = 0; i < expected.elements<float>().size(); ++i) {
    const float y = expected.elements<float>()[i];
    CAPTURE(i, y, got.elements<float>()[i]);
    if (std::isnan(y)) {
      ++undefined;
      CHECK(std::isnan(got.elements<float>()[i]));
    } else {
      CHECK(got.elements<float>()[i] == Approx(y < 0 ? 0 : y).margin(1e-5));
    }
  }
  CHECK(undefined > 0);
  CHECK(undefined < expected.elements<float>().size());
}

TEST_CASE("row edges: a ReLU that is fused keeps NaN, as one of its own does", "[cuda]") {
  tested = GENERATE(TestedDevice::kCudaOnHost, TestedDevice::kCpu);
  const auto filled = [](const Shape& shape, size_t undefined) {
    Tensor tensor = Tensor::Zeros(DType::kF32, shape);
    for (size_t i = 0; i < tensor.elements<float>().size(); ++i) {
      tensor.elements<float>()[i] = 0.1f * static_cast<float>(i % 13) - 0.55f;
    }
    if (undefined < tensor.elements<float>().size()) tensor.elements<float>()[undefined] = std::nanf("");
    return tensor;
  };
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  for (const auto& [m, k, n] : {std::tuple(5, 8, 6), std::tuple(33, 64, 48)}) {
    Tensors inputs;
    inputs.push_back(filled({m, k}, 3));
    inputs.push_back(filled({k, n}, kNone));
    CheckReluKeepsNaN(OpType::kMatMul, NoAttributes{}, inputs);
    inputs.push_back(filled({n}, kNone));
    CheckReluKeepsNaN(OpType::kGemm, GemmAttributes{}, inputs);
    inputs[2] = filled({m, n}, kNone);
    CheckReluKeepsNaN(OpType::kGemm, GemmAttributes{}, inputs);
  }
  for (const int64_t channels : {3, 16}) {
    Tensors inputs;
    inputs.push_back(filled({2, channels, 9, 9}, 40));
    inputs.push_back(filled({32, channels, 3, 3}, kNone));
    inputs.push_back(filled({32}, kNone));
    CheckReluKeepsNaN(OpType::kConv, ConvAttributes{.kernel_shape = {3, 3}, .pads = {1, 1, 1, 1}}, inputs);
  }
}

TEST_CASE("row edges: what is computed of NaN is NaN, as PyTorch has it", "[cuda]") {
  tested = GENERATE(TestedDevice::kReference, TestedDevice::kCudaOnHost, TestedDevice::kCpu);
  const auto device = MakeTestedDevice(tested);
  constexpr int64_t kCount = 37;  // vectors and what is left of them
  std::vector<float> values(kCount, 0.5f), others(kCount, 1);
  for (size_t i = 0; i < values.size(); i += 3) values[i] = std::nanf("");
  const auto check = [&](OpType op, const OpAttributes& attributes, bool second = false, bool binary = false) {
    Tensors inputs;
    inputs.push_back(Tensor::Of<float>({kCount}, second ? others : values));
    if (binary) inputs.push_back(Tensor::Of<float>({kCount}, second ? values : others));
    const NamedTensors outputs = RunOneNode(*device, op, attributes, std::move(inputs));
    for (size_t i = 0; i < values.size(); ++i) {
      CAPTURE(OpName(op), static_cast<int>(tested), second, i);
      CHECK(std::isnan(outputs.at("y0").elements<float>()[i]) == std::isnan(values[i]));
    }
  };
  for (const OpType op :
       {OpType::kRelu, OpType::kSigmoid, OpType::kTanh, OpType::kHardSwish, OpType::kSoftplus, OpType::kSoftsign,
        OpType::kMish, OpType::kAbs, OpType::kNeg, OpType::kFloor, OpType::kCeil, OpType::kRound, OpType::kSqrt,
        OpType::kExp, OpType::kLog, OpType::kErf, OpType::kSin, OpType::kCos, OpType::kReciprocal}) {
    check(op, NoAttributes{});
  }
  for (const OpType op : {OpType::kLeakyRelu, OpType::kElu, OpType::kSelu, OpType::kCelu, OpType::kHardSigmoid,
                          OpType::kThresholdedRelu, OpType::kShrink}) {
    check(op, ActivationAttributes{.alpha = 0.2, .beta = 0.5});
  }
  for (const bool tanh : {false, true}) check(OpType::kGelu, GeluAttributes{tanh});
  check(OpType::kClip, ClipAttributes{.min = 0, .max = 6});
  check(OpType::kClip, ClipAttributes{.max = 6});
  check(OpType::kClip, ClipAttributes{.min = 0});
  for (const bool second : {false, true}) {
    for (const OpType op : {OpType::kAdd, OpType::kSub, OpType::kMul, OpType::kDiv, OpType::kMin, OpType::kMax}) {
      check(op, NoAttributes{}, second, true);
    }
  }
  check(OpType::kPRelu, NoAttributes{}, false, true);
}

TEST_CASE("row edges: the largest of a window with NaN is NaN", "[cuda]") {
  tested = GENERATE(TestedDevice::kCudaOnHost, TestedDevice::kCpu);
  std::vector<float> values(2 * 16 * 8 * 8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 37 == 5 ? std::nanf("") : static_cast<float>(i % 29) - 14;
  Tensors inputs;
  inputs.push_back(Tensor::Of<float>({2, 16, 8, 8}, values));
  CheckSameKinds(OpType::kMaxPool, PoolAttributes{.kernel_shape = {2, 2}, .strides = {2, 2}}, inputs);
  CheckSameKinds(OpType::kMaxPool, PoolAttributes{.kernel_shape = {3, 3}, .strides = {2, 2}, .pads = {1, 1, 1, 1}},
                 inputs);
  CheckSameKinds(OpType::kGlobalMaxPool, NoAttributes{}, inputs);
  // Each plane has one.
  const auto outputs = RunBoth(OpType::kGlobalMaxPool, NoAttributes{}, inputs);
  for (const float value : outputs.first.at("y0").elements<float>()) CHECK(std::isnan(value));
}

TEST_CASE("row edges: rows without elements give what is stated of nothing", "[cuda]") {
  tested = GENERATE(TestedDevice::kCudaOnHost, TestedDevice::kCpu);
  Tensors inputs;
  inputs.push_back(Tensor::Zeros(DType::kF32, {3, 0}));
  for (const OpType op : {OpType::kReduceSum, OpType::kReduceProd, OpType::kReduceMax, OpType::kReduceMin}) {
    CheckSameBytes(op, ReduceAttributes{.axes = {1}}, inputs);
    CheckSameBytes(op, ReduceAttributes{.axes = {0}}, inputs);
  }
  CheckSameBytes(OpType::kSoftmax, SoftmaxAttributes{1}, inputs);
}

}  // namespace
}  // namespace lockstep
