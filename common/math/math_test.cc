#include "common/math/math.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

// Largest error in units of the last place, over points spread evenly, against libm's long double.
template <typename T>
double WorstUlps(T (*ours)(T), long double (*exact)(long double), double from, double to) {
  double worst = 0;
  for (int i = 0; i <= 200000; ++i) {
    const T x = static_cast<T>(from + (to - from) * i / 200000.0);
    const long double wanted = exact(x);
    const T rounded = std::fabs(static_cast<T>(wanted));
    const T ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
    worst = std::max(worst, static_cast<double>(std::fabs(wanted - ours(x)) / ulp));
  }
  return worst;
}

long double ExactExp(long double x) { return std::exp(x); }
long double ExactExpm1(long double x) { return std::expm1(x); }
long double ExactLog(long double x) { return std::log(x); }
long double ExactLog1p(long double x) { return std::log1p(x); }
long double ExactTanh(long double x) { return std::tanh(x); }
long double ExactSigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("math: double functions stay within four units of the last place", "[math]") {
  CHECK(WorstUlps<double>(Exp, ExactExp, -707, 709.7) < 4);
  CHECK(WorstUlps<double>(Exp, ExactExp, -1, 1) < 4);
  CHECK(WorstUlps<double>(Expm1OfNegative<double>, ExactExpm1, -50, 0) < 4);
  CHECK(WorstUlps<double>(Expm1OfNegative<double>, ExactExpm1, -1, 0) < 4);
  CHECK(WorstUlps<double>(Log, ExactLog, 1e-300, 1e300) < 4);
  CHECK(WorstUlps<double>(Log, ExactLog, 1e-3, 3) < 4);
  CHECK(WorstUlps<double>(Log, ExactLog, 0.999, 1.001) < 4);
  CHECK(WorstUlps<double>(Log1p, ExactLog1p, -0.4, 1) < 4);
  CHECK(WorstUlps<double>(Tanh, ExactTanh, -21, 21) < 4);
  CHECK(WorstUlps<double>(Tanh, ExactTanh, -1, 1) < 4);
  CHECK(WorstUlps<double>(Tanh, ExactTanh, -1e-3, 1e-3) < 4);
  CHECK(WorstUlps<double>(Sigmoid, ExactSigmoid, -40, 40) < 4);
}

TEST_CASE("math: float functions stay within four units of the last place", "[math]") {
  CHECK(WorstUlps<float>(Exp, ExactExp, -87, 88.7) < 4);
  CHECK(WorstUlps<float>(Exp, ExactExp, -1, 1) < 4);
  CHECK(WorstUlps<float>(Expm1OfNegative<float>, ExactExpm1, -50, 0) < 4);
  CHECK(WorstUlps<float>(Expm1OfNegative<float>, ExactExpm1, -1, 0) < 4);
  CHECK(WorstUlps<float>(Log, ExactLog, 1e-37, 3e38) < 4);
  CHECK(WorstUlps<float>(Log, ExactLog, 1e-3, 3) < 4);
  CHECK(WorstUlps<float>(Log, ExactLog, 0.999, 1.001) < 4);
  CHECK(WorstUlps<float>(Tanh, ExactTanh, -21, 21) < 4);
  CHECK(WorstUlps<float>(Tanh, ExactTanh, -1, 1) < 4);
  CHECK(WorstUlps<float>(Tanh, ExactTanh, -1e-3, 1e-3) < 4);
  CHECK(WorstUlps<float>(Sigmoid, ExactSigmoid, -40, 40) < 4);
}

template <typename T>
void CheckLimits() {
  const T infinity = std::numeric_limits<T>::infinity();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  CHECK(Exp(T(0)) == 1);
  CHECK(Exp(-infinity) == 0);
  CHECK(Exp(infinity) == infinity);
  CHECK(std::isnan(Exp(nan)));
  CHECK(Log(T(1)) == 0);
  CHECK(Log(T(0)) == -infinity);
  CHECK(Log(infinity) == infinity);
  CHECK(std::isnan(Log(T(-1))));
  CHECK(std::isnan(Log(-infinity)));
  CHECK(std::isnan(Log(nan)));
  CHECK(Tanh(infinity) == 1);
  CHECK(Tanh(-infinity) == -1);
  CHECK(Tanh(T(0)) == 0);
  CHECK(std::isnan(Tanh(nan)));
  CHECK(Sigmoid(-infinity) == 0);
  CHECK(Sigmoid(infinity) == 1);
  CHECK(Sigmoid(T(0)) == T(0.5));
  CHECK(std::isnan(Sigmoid(nan)));
}

TEST_CASE("math: limits and NaN come out as they should", "[math]") {
  CheckLimits<double>();
  CheckLimits<float>();
  CHECK(Exp(710.0) == std::numeric_limits<double>::infinity());
  CHECK(std::isfinite(Exp(709.782)));
  CHECK(Exp(88.8f) == std::numeric_limits<float>::infinity());
  CHECK(std::isfinite(Exp(88.72f)));
  CHECK(Exp(-1000.0) == 0.0);
  CHECK(Log1p(0.0) == 0.0);
  CHECK(Log1p(std::numeric_limits<double>::infinity()) == std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lockstep
