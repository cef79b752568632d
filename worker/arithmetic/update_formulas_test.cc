// The arithmetic of an update where the values are not finite.
#include "worker/arithmetic/update_formulas.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace lockstep::device {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("update: without momentum a statistic that is not finite becomes the mean", "[device]") {
  for (const float running : {kInfinity, -kInfinity, std::nanf("")}) {
    CHECK(MovedStatistic(0.0, running, 2.5) == 2.5f);
    CHECK(MovedStatistic(0.0, running, kInfinity) == kInfinity);
    CHECK_FALSE(std::isfinite(MovedStatistic(0.9, running, 2.5)));
  }
}

TEST_CASE("update: without momentum a finite statistic leaves at most its sign, on a mean of zero", "[device]") {
  CHECK(std::signbit(MovedStatistic(0.0, -1.0f, -0.0)));
  CHECK_FALSE(std::signbit(MovedStatistic(0.0, 1.0f, -0.0)));
  CHECK(MovedStatistic(0.0, -1.0f, 3.0) == 3.0f);
}

}  // namespace
}  // namespace lockstep::device
