#include "worker/kernels/cuda/fast_divide.h"

#include <catch2/catch.hpp>
#include <vector>

namespace lockstep::device::cuda {
namespace {

TEST_CASE("fast divide: quotients and remainders are those of division, at every edge", "[cuda]") {
  std::vector<int64_t> numbers;
  for (int64_t i = 1; i < 70; ++i) numbers.push_back(i);
  for (int bit = 6; bit < 32; ++bit) {
    for (int64_t near = -3; near <= 3; ++near) numbers.push_back((int64_t{1} << bit) + near);
  }
  for (const int64_t divisor : numbers) {
    if (divisor > FastDivide::kMost) continue;
    const FastDivide divide(divisor);
    for (const int64_t multiple : {int64_t{0}, int64_t{1}, int64_t{2}, FastDivide::kMost / divisor}) {
      for (int64_t x = multiple * divisor - 1; x <= multiple * divisor + 1; ++x) {
        if (x < 0 || x > FastDivide::kMost) continue;
        auto rest = static_cast<uint32_t>(x);
        const uint32_t remainder = divide.Split(&rest);
        REQUIRE(rest == static_cast<uint32_t>(x / divisor));
        REQUIRE(remainder == static_cast<uint32_t>(x % divisor));
      }
    }
    for (const int64_t x : numbers) {
      if (x > FastDivide::kMost) continue;
      REQUIRE(divide.Quotient(static_cast<uint32_t>(x)) == static_cast<uint32_t>(x / divisor));
    }
  }
}

TEST_CASE("fast divide: numbers of 64 bits are divided too", "[cuda]") {
  std::vector<int64_t> numbers = {1, 2, 3, 7, 1000003};
  for (int bit = 30; bit < 62; ++bit) {
    for (int64_t near = -2; near <= 2; ++near) numbers.push_back((int64_t{1} << bit) + near);
  }
  for (const int64_t divisor : numbers) {
    const WideDivide divide(divisor);
    for (const int64_t x : numbers) {
      int64_t rest = x;
      REQUIRE(divide.Split(&rest) == x % divisor);
      REQUIRE(rest == x / divisor);
    }
  }
}

}  // namespace
}  // namespace lockstep::device::cuda
