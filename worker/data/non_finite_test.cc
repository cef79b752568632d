#include "worker/data/non_finite.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::worker {
namespace {

using Catch::Contains;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
StoredArray ArrayOf(DType dtype, const std::vector<T>& values) {
  StoredArray array;
  array.path = "x.npy";
  array.element = [](int64_t i) { return "x.npy: place " + std::to_string(i) + ": "; };
  array.dtype = dtype;
  array.shape = {static_cast<int64_t>(values.size())};
  array.elements = {new std::byte[values.size() * sizeof(T)], std::default_delete<std::byte[]>()};
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T), array.elements.get());
  return array;
}

TEST_CASE("data: what is not finite is counted, and the first of it is named with its file", "[data]") {
  const auto found = FindNonFinite(
      ArrayOf<float>(DType::kF32, {0, 1, -static_cast<float>(kInfinity), 2, static_cast<float>(kNan), 3}));

  REQUIRE(found.has_value());
  CHECK(found->count == 2);
  CHECK(found->any_nan);
  CHECK_THAT(found->first, Contains("x.npy: place 2: element 2 is -inf"));
}

TEST_CASE("data: infinities alone are told from NaNs, in float64 too", "[data]") {
  const auto found = FindNonFinite(ArrayOf<double>(DType::kF64, {kInfinity, 1, -kInfinity}));

  REQUIRE(found.has_value());
  CHECK(found->count == 2);
  CHECK_FALSE(found->any_nan);
  CHECK_THAT(found->first, Contains("element 0 is inf"));
  CHECK(FindNonFinite(ArrayOf<double>(DType::kF64, {1, kNan}))->any_nan);
}

TEST_CASE("data: of float16 the bits are read, and the largest number is finite", "[data]") {
  const auto found = FindNonFinite(ArrayOf<uint16_t>(DType::kF16, {0x7bff, 0x0001, 0xfc00, 0x7e00}));

  REQUIRE(found.has_value());
  CHECK(found->count == 2);
  CHECK(found->any_nan);
  CHECK_THAT(found->first, Contains("element 2 is -inf"));
}

TEST_CASE("data: finite numbers and integers of any bits are not found", "[data]") {
  CHECK_FALSE(FindNonFinite(ArrayOf<float>(DType::kF32, {0, -1, std::numeric_limits<float>::max()})).has_value());
  CHECK_FALSE(FindNonFinite(ArrayOf<int64_t>(DType::kI64, {-1, 0x7ff8000000000000})).has_value());
  CHECK_FALSE(FindNonFinite(ArrayOf<uint8_t>(DType::kU8, {255})).has_value());
  CHECK_FALSE(FindNonFinite(ArrayOf<float>(DType::kF32, {})).has_value());
}

}  // namespace
}  // namespace lockstep::worker
