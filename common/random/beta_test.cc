#include "common/random/beta.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <vector>

namespace lockstep {
namespace {

constexpr int kDraws = 10000;

std::vector<double> Draws(double alpha, uint64_t seed) {
  std::vector<double> draws;
  for (uint64_t i = 0; i < kDraws; ++i) {
    draws.push_back(SymmetricBeta(alpha, RandomStream::For(seed, StreamOfName("beta"), i, 0, 0), 1));
  }
  return draws;
}

// The integral of (t * (1 - t))^(alpha - 1) over [0, x], by Simpson's rule over u = t^power, which takes the pole at 0
// away. REQUIRES: x <= 1/2.
double Lower(double alpha, double x) {
  constexpr int kParts = 100;
  const double power = std::min(alpha, 1.0), end = std::pow(x, power);
  const auto at = [&](double u) {
    return std::pow(u, alpha / power - 1) * std::pow(1 - std::pow(u, 1 / power), alpha - 1);
  };
  double sum = at(0) + at(end);
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 0 ? 2 : 4) * at(end * i / kParts);
  return sum * end / (3 * kParts) / power;
}

TEST_CASE("beta: numbers are distributed as they should be", "[random]") {
  const double alpha = GENERATE(0.01, 0.1, 0.2, 0.4, 1.0, 1.5, 8.0);
  const uint64_t seed = GENERATE(1, 2);
  CAPTURE(alpha, seed);
  std::vector<double> draws = Draws(alpha, seed);
  std::sort(draws.begin(), draws.end());
  REQUIRE((draws.front() >= 0 && draws.back() <= 1));

  // The mean is 1/2, the variance 1 / (4 (2 alpha + 1)), the fourth central moment 3 / (16 (2 alpha + 1) (2 alpha +
  // 3)).
  double mean = 0, square = 0, fourth = 0;
  for (const double x : draws) {
    mean += x / kDraws;
    square += std::pow(x - 0.5, 2) / kDraws;
    fourth += std::pow(x - 0.5, 4) / kDraws;
  }
  const double variance = 1 / (4 * (2 * alpha + 1)), kurtic = 3 / (16 * (2 * alpha + 1) * (2 * alpha + 3));
  const double four_errors = 4 / std::sqrt(static_cast<double>(kDraws));
  CHECK(std::abs(mean - 0.5) < four_errors * std::sqrt(variance));
  CHECK(std::abs(square - variance) < four_errors * std::sqrt(kurtic - variance * variance));
  CHECK(std::abs(fourth - kurtic) < four_errors * std::sqrt(kurtic) / 4);  // its variance is below kurtic / 16

  // Kolmogorov and Smirnov, of the lower half: one in a thousand is above 1.95. Near 1 float64 has no room for as many
  // numbers as near 0, and the upper half is compared at a few places.
  const double half = Lower(alpha, 0.5);
  const auto count = static_cast<int>(std::lower_bound(draws.begin(), draws.end(), 0.5) - draws.begin());
  double distance = 0;
  for (int i = 0; i < count; ++i) {
    const double below = Lower(alpha, draws[static_cast<size_t>(i)]) / half;
    distance = std::max({distance, std::abs(below - i / double(count)), std::abs(below - (i + 1) / double(count))});
  }
  CHECK(distance * std::sqrt(static_cast<double>(count)) < 1.95);
  for (const double x : {0.5, 0.6, 0.75, 0.9, 0.99, 1 - 1e-6}) {
    CAPTURE(x);
    const auto above = static_cast<double>(draws.end() - std::upper_bound(draws.begin(), draws.end(), x));
    CHECK(std::abs(above / kDraws - Lower(alpha, 1 - x) / (2 * half)) < 1.95 / std::sqrt(double{kDraws}));
  }
}

TEST_CASE("beta: a number is a function of the stream and of the block, for extreme parameters too", "[random]") {
  const RandomStream draws = RandomStream::For(3, 4);
  for (const double alpha : {0.001, 0.2, 1.0, 2.0, 1e6}) {
    CAPTURE(alpha);
    std::set<double> numbers;
    for (uint64_t block = 0; block < 64; ++block) {
      const double x = SymmetricBeta(alpha, draws, block);
      CHECK((x >= 0 && x <= 1));
      CHECK(SymmetricBeta(alpha, RandomStream::For(3, 4), block) == x);
      numbers.insert(x);
    }
    CHECK(numbers.size() > (alpha < 0.01 ? 1 : 20));
  }
}

}  // namespace
}  // namespace lockstep
