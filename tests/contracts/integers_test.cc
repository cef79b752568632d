// What ONNX leaves open about integers and casts, and the op set's headers promise.
#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "common/graph/ops/schema.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

// One op over vectors of equal length, on the device of the test case.
template <typename Result, typename... Operand>
std::vector<Result> Run(TestedDevice which, OpType op, const OpAttributes& attributes,
                        const std::vector<Operand>&... operands) {
  std::vector<Tensor> tensors;
  (tensors.push_back(Tensor::Of<Operand>({static_cast<int64_t>(operands.size())}, operands)), ...);
  const auto device = MakeTestedDevice(which);
  const NamedTensors results = RunOneNode(*device, op, attributes, std::move(tensors));
  const auto values = results.at("y0").template elements<Result>();
  return std::vector<Result>(values.begin(), values.end());
}

template <typename T>
constexpr T kLowest = std::numeric_limits<T>::min();
template <typename T>
constexpr T kMost = std::numeric_limits<T>::max();

template <typename T>
void CheckArithmetic(TestedDevice which) {
  using V = std::vector<T>;
  const T low = kLowest<T>, most = kMost<T>, minus = static_cast<T>(-1);

  CHECK(Run<T>(which, OpType::kAdd, {}, V{most, 5}, V{1, 6}) == V{low, 11});
  CHECK(Run<T>(which, OpType::kSub, {}, V{low, 9}, V{1, 4}) == V{most, 5});
  CHECK(Run<T>(which, OpType::kMul, {}, V{most, 3}, V{2, 4}) == V{static_cast<T>(-2), 12});
  CHECK(Run<T>(which, OpType::kDiv, {}, V{low, 7, 7, static_cast<T>(-7)}, V{minus, 0, 2, 2}) ==
        V{low, 0, 3, static_cast<T>(-3)});
  CHECK(Run<T>(which, OpType::kNeg, {}, V{low, 3}) == V{low, static_cast<T>(-3)});
  CHECK(Run<T>(which, OpType::kAbs, {}, V{low, minus, 0}) == V{low, 1, 0});
  CHECK(Run<T>(which, OpType::kSign, {}, V{low, 0, most}) == V{minus, 0, 1});
  CHECK(Run<T>(which, OpType::kMod, ModAttributes{false}, V{low, 7, static_cast<T>(-7), 7},
               V{minus, 0, 4, static_cast<T>(-4)}) == V{0, 0, 1, minus});
  CHECK(Run<T>(which, OpType::kMod, ModAttributes{true}, V{low, 7, static_cast<T>(-7), 7},
               V{minus, 0, 4, static_cast<T>(-4)}) == V{0, 0, static_cast<T>(-3), 3});
  CHECK(Run<T>(which, OpType::kClip, ClipAttributes{-2.0, 1e300}, V{low, 0, most}) == V{static_cast<T>(-2), 0, most});
}

TEST_CASE("integers: they wrap around, and nothing divides by zero", "[conformance]") {
  const TestedDevice which = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  CheckArithmetic<int8_t>(which);
  CheckArithmetic<int32_t>(which);
  CheckArithmetic<int64_t>(which);
  using U = std::vector<uint8_t>;
  CHECK(Run<uint8_t>(which, OpType::kSub, {}, U{3}, U{5}) == U{254});
  CHECK(Run<uint8_t>(which, OpType::kDiv, {}, U{200, 9}, U{255, 0}) == U{0, 0});
  CHECK(Run<uint8_t>(which, OpType::kMod, ModAttributes{false}, U{200, 9}, U{255, 0}) == U{200, 0});
}

TEST_CASE("integers: powers", "[conformance]") {
  const TestedDevice which = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  using I = std::vector<int32_t>;
  CHECK(Run<int32_t>(which, OpType::kPow, {}, I{3, -2, 2, 0, 1, -1, 2, 0}, I{4, 3, 31, 0, -5, -3, -1, -2}) ==
        I{81, -8, kLowest<int32_t>, 1, 1, -1, 0, 0});
  CHECK(Run<int32_t>(which, OpType::kPow, {}, I{3, 2, 10, -4}, std::vector<float>{6.0f, 0.5f, 20.5f, 0.5f}) ==
        I{729, 1, kMost<int32_t>, 0});
}

TEST_CASE("casts: what does not fit comes to the nearest, integers keep their low bits", "[conformance]") {
  const TestedDevice which = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1.9f, -1.9f, 3e9f, -3e9f, infinity, std::numeric_limits<float>::quiet_NaN()};
  CHECK(Run<int32_t>(which, OpType::kCast, CastAttributes{DType::kI32}, x) ==
        std::vector<int32_t>{1, -1, kMost<int32_t>, kLowest<int32_t>, kMost<int32_t>, 0});
  CHECK(Run<uint8_t>(which, OpType::kCast, CastAttributes{DType::kU8}, x) ==
        std::vector<uint8_t>{1, 0, 255, 0, 255, 0});
  CHECK(Run<int64_t>(which, OpType::kCast, CastAttributes{DType::kI64}, std::vector<double>{1e19, -1e19}) ==
        std::vector<int64_t>{kMost<int64_t>, kLowest<int64_t>});
  CHECK(Run<int8_t>(which, OpType::kCast, CastAttributes{DType::kI8}, std::vector<int64_t>{300, -129, 127}) ==
        std::vector<int8_t>{44, 127, 127});
  CHECK(Run<float>(which, OpType::kCast, CastAttributes{DType::kF32}, std::vector<uint8_t>{0, 255}) ==
        std::vector<float>{0.0f, 255.0f});
  CHECK(Run<uint16_t>(which, OpType::kCast, CastAttributes{DType::kU16}, x) ==
        std::vector<uint16_t>{1, 0, 65535, 0, 65535, 0});
  CHECK(Run<int16_t>(which, OpType::kCast, CastAttributes{DType::kI16}, std::vector<int32_t>{65537, -32769, -5}) ==
        std::vector<int16_t>{1, 32767, -5});
  CHECK(Run<uint32_t>(which, OpType::kCast, CastAttributes{DType::kU32}, std::vector<int64_t>{-1, 1LL << 32, 7}) ==
        std::vector<uint32_t>{4294967295, 0, 7});
  CHECK(Run<int64_t>(which, OpType::kCast, CastAttributes{DType::kI64}, std::vector<uint32_t>{4294967295, 3}) ==
        std::vector<int64_t>{4294967295, 3});
}

}  // namespace
}  // namespace lockstep
