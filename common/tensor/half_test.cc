#include "common/tensor/half.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lockstep {
namespace {

TEST_CASE("half: every finite number is what its bits say, and NaNs and infinities stay such", "[tensor]") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const bool negative = (bits & 0x8000) != 0;
    if (std::signbit(value) != negative) ++wrong;
    if (exponent == 31) {
      if (fraction == 0 ? !std::isinf(value) : !std::isnan(value)) ++wrong;
      continue;
    }
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (static_cast<double>(value) != (negative ? -magnitude : magnitude)) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(HalfToFloat(0x3c00) == 1.0f);
  CHECK(HalfToFloat(0xc000) == -2.0f);
}

}  // namespace
}  // namespace lockstep
