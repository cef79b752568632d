// Element-wise ops of every type that the reference serves, the rare ones too: CUDA's own kernels give its bits.
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/random/random.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

// Numbers of all sizes, among them what is special in the type.
template <typename T>
Tensor Numbers(const Shape& shape, uint64_t seed) {
  using Limits = std::numeric_limits<T>;
  const RandomStream random = RandomStream::For(23, seed);
  const T special[] = {T(0), T(1), Limits::lowest(), Limits::max(), Limits::infinity(), Limits::quiet_NaN(), T(2)};
  Tensor tensor = Tensor::Zeros(DTypeOf<T>(), shape);
  for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
    const uint32_t bits = random.At(i);
    T& element = tensor.elements<T>()[i];
    if (bits % 4 == 0) {
      element = special[(bits >> 8) % std::size(special)];
    } else if constexpr (std::is_floating_point_v<T>) {
      element = static_cast<T>(SymmetricUnit(bits)) * static_cast<T>(bits % 4 == 1 ? 1e12 : 20);
    } else {
      element = static_cast<T>(static_cast<int64_t>(bits) - (int64_t{1} << 31));
    }
  }
  return tensor;
}

template <typename T>
bool Same(const Tensor& a, const Tensor& b) {
  for (size_t i = 0; i < static_cast<size_t>(a.num_elements()); ++i) {
    const T x = a.elements<T>()[i];
    const T y = b.elements<T>()[i];
    // Where a result is no number, its bits are the processor's.
    if (std::memcmp(&x, &y, sizeof(T)) != 0 && (x == x || y == y)) return false;
  }
  return true;
}

bool Same(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::kF32) return Same<float>(a, b);
  if (a.dtype() == DType::kF64) return Same<double>(a, b);
  return std::memcmp(a.data(), b.data(), a.bytes().size()) == 0;
}

template <typename... T>
void CheckSame(OpType op, const OpAttributes& attributes, const T&... inputs) {
  INFO(OpName(op));
  const auto run = [&](TestedDevice which) {
    std::vector<Tensor> copies;
    (copies.push_back(inputs.Clone()), ...);
    return std::move(RunOneNode(*MakeTestedDevice(which), op, attributes, std::move(copies)).at("y0"));
  };
  const Tensor expected = run(TestedDevice::kReference);
  const Tensor got = run(TestedDevice::kCudaOnHost);
  REQUIRE(got.dtype() == expected.dtype());
  CHECK(Same(expected, got));
}

TEMPLATE_TEST_CASE("element types: arithmetic, comparisons and casts", "[device]", float, double, int64_t, int32_t,
                   int8_t, uint8_t) {
  const Tensor a = Numbers<TestType>({9, 52}, 1);
  const Tensor b = Numbers<TestType>({9, 52}, 2);
  const Tensor row = Numbers<TestType>({52}, 3);
  const Tensor number = Numbers<TestType>({}, 4);

  for (const OpType op :
       {OpType::kAdd, OpType::kSub, OpType::kMul, OpType::kDiv, OpType::kMin, OpType::kMax, OpType::kEqual,
        OpType::kGreater, OpType::kGreaterOrEqual, OpType::kLess, OpType::kLessOrEqual}) {
    CheckSame(op, NoAttributes(), a, b);
    CheckSame(op, NoAttributes(), a, row);
    CheckSame(op, NoAttributes(), number, a);
  }
  CheckSame(OpType::kMod, ModAttributes{true}, a, b);
  if (std::is_integral_v<TestType>) CheckSame(OpType::kMod, ModAttributes{false}, a, b);
  for (const OpType op : {OpType::kAbs, OpType::kSign}) CheckSame(op, NoAttributes(), a);
  if (std::is_signed_v<TestType>) CheckSame(OpType::kNeg, NoAttributes(), a);
  CheckSame(OpType::kClip, ClipAttributes{-3.0, 1e300}, a);
  for (const DType to : {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool}) {
    CheckSame(OpType::kCast, CastAttributes{to}, a);
  }
  if (sizeof(TestType) >= 4) {
    CheckSame(OpType::kPow, NoAttributes(), a, Numbers<float>({52}, 5));
    CheckSame(OpType::kPow, NoAttributes(), a, Numbers<double>({52}, 6));
    CheckSame(OpType::kPow, NoAttributes(), a, Numbers<int64_t>({52}, 7));
    CheckSame(OpType::kPow, NoAttributes(), a, Numbers<int32_t>({52}, 8));
  }
}

TEMPLATE_TEST_CASE("element types: casts of integers that nothing else computes with", "[device]", int16_t, uint16_t,
                   uint32_t) {
  const Tensor a = Numbers<TestType>({9, 52}, 1);

  for (const DType to : {DType::kF32, DType::kI64, DType::kI32}) CheckSame(OpType::kCast, CastAttributes{to}, a);
  const CastAttributes back{DTypeOf<TestType>()};
  CheckSame(OpType::kCast, back, Numbers<float>({9, 52}, 2));
  CheckSame(OpType::kCast, back, Numbers<int64_t>({9, 52}, 3));
  CheckSame(OpType::kCast, back, Numbers<int32_t>({9, 52}, 4));
}

TEMPLATE_TEST_CASE("element types: functions of floating numbers, infinite ones and NaN too", "[device]", float,
                   double) {
  const Tensor a = Numbers<TestType>({9, 53}, 11);

  for (const OpType op : {OpType::kReciprocal, OpType::kSqrt,  OpType::kExp,  OpType::kLog,   OpType::kErf,
                          OpType::kSin,        OpType::kCos,   OpType::kTan,  OpType::kAsin,  OpType::kAcos,
                          OpType::kAtan,       OpType::kSinh,  OpType::kCosh, OpType::kAsinh, OpType::kAcosh,
                          OpType::kAtanh,      OpType::kFloor, OpType::kCeil, OpType::kRound, OpType::kIsNaN}) {
    CheckSame(op, NoAttributes(), a);
  }
  for (const bool positive : {false, true}) {
    CheckSame(OpType::kIsInf, IsInfAttributes{.detect_negative = !positive, .detect_positive = positive}, a);
  }
  CheckSame(OpType::kScale, ScaleAttributes{.factor = 0.7}, a);
  CheckSame(OpType::kPRelu, NoAttributes(), a, Numbers<TestType>({53}, 12));
}

}  // namespace
}  // namespace lockstep
