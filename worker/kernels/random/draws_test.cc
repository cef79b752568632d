// The numbers that UniformLike and NormalLike give have the distributions that they promise.
#include "worker/kernels/random/draws.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/math/erf.h"

namespace lockstep::device {
namespace {

constexpr int64_t kNumbers = 1 << 20;

template <typename Block>
std::vector<double> Drawn(Block block, uint64_t stream) {
  const int64_t key[4] = {42, 7, 1, 0};
  const RandomStream numbers = StreamOfPass(key, stream);
  std::vector<double> drawn;
  for (uint64_t i = 0; i < kNumbers / 4; ++i) {
    for (const float number : block(numbers.Block(i))) drawn.push_back(static_cast<double>(number));
  }
  return drawn;
}

double MeanOf(const std::vector<double>& numbers, int power) {
  double sum = 0;
  for (const double number : numbers) sum += std::pow(number, power);
  return sum / static_cast<double>(numbers.size());
}

// The largest distance between the numbers' own distribution and `cdf`, times the root of their count: above 1.95 in
// one of a thousand samples (Kolmogorov and Smirnov).
template <typename Cdf>
double Distance(std::vector<double> numbers, Cdf cdf) {
  std::sort(numbers.begin(), numbers.end());
  const auto count = static_cast<double>(numbers.size());
  double worst = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double wanted = cdf(numbers[i]);
    worst = std::max({worst, std::abs(wanted - static_cast<double>(i) / count),
                      std::abs(wanted - static_cast<double>(i + 1) / count)});
  }
  return worst * std::sqrt(count);
}

// Of neighbours `lag` apart.
double Correlation(const std::vector<double>& numbers, size_t lag, double mean) {
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i + lag < numbers.size(); ++i) {
    sum += (numbers[i] - mean) * (numbers[i + lag] - mean);
    squares += (numbers[i] - mean) * (numbers[i] - mean);
  }
  return sum / squares * std::sqrt(static_cast<double>(numbers.size()));
}

TEST_CASE("random: uniform numbers are uniform and independent", "[random]") {
  const std::vector<double> numbers = Drawn(UniformBlock, 3);
  CHECK(*std::min_element(numbers.begin(), numbers.end()) > 0);
  CHECK(*std::max_element(numbers.begin(), numbers.end()) < 1);
  CHECK(Distance(numbers, [](double x) { return x; }) < 1.95);
  for (const size_t lag : {1, 2, 3, 4}) CHECK(std::abs(Correlation(numbers, lag, 0.5)) < 4);
}

TEST_CASE("random: normal numbers are normal and independent", "[random]") {
  const std::vector<double> numbers = Drawn(NormalBlock, 3);
  CHECK(*std::max_element(numbers.begin(), numbers.end()) < 6.7);
  CHECK(Distance(numbers, [](double x) { return NormalCdf(x); }) < 1.95);
  // Moments, in standard deviations of their own.
  const double root = std::sqrt(static_cast<double>(kNumbers));
  CHECK(std::abs(MeanOf(numbers, 1)) * root < 4);
  CHECK(std::abs(MeanOf(numbers, 2) - 1) * root / std::sqrt(2.0) < 4);
  CHECK(std::abs(MeanOf(numbers, 3)) * root / std::sqrt(15.0) < 4);
  CHECK(std::abs(MeanOf(numbers, 4) - 3) * root / std::sqrt(96.0) < 4);
  for (const size_t lag : {1, 2, 3, 4}) CHECK(std::abs(Correlation(numbers, lag, 0)) < 4);
  // The two of a pair lie in all directions alike: also their squares are independent.
  std::vector<double> squares = numbers;
  for (double& number : squares) number *= number;
  CHECK(std::abs(Correlation(squares, 1, 1)) < 4);
}

TEST_CASE("random: the ends of the numbers' range", "[random]") {
  float first = 0;
  float second = 0;
  for (const uint32_t a : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    for (const uint32_t b : {0u, 0x1fffffffu, 0x20000000u, 0x3fffffffu, 0x40000000u, 0x80000000u, 0xffffffffu}) {
      NormalPair(a, b, &first, &second);
      CAPTURE(a, b);
      CHECK(std::isfinite(first));
      CHECK(std::isfinite(second));
      const double chance = (static_cast<double>(a >> 1) + 0.5) * 0x1p-31;
      CHECK(std::hypot(static_cast<double>(first), static_cast<double>(second)) ==
            Approx(std::sqrt(-2 * std::log(chance))).margin(4e-4));
    }
  }
  CHECK(Uniform(0xffffffffu) == 1.0f - 0x1p-24f);
  CHECK(Uniform(0) == 0x1p-24f);
}

TEST_CASE("random: streams, steps, shards and passes have numbers of their own", "[random]") {
  const int64_t keys[][4] = {{42, 7, 1, 0}, {43, 7, 1, 0}, {42, 8, 1, 0}, {42, 7, 2, 0}, {42, 7, 1, 1}};
  std::vector<std::array<uint32_t, 4>> blocks = {StreamOfPass(keys[0], 4).Block(0)};
  for (const auto& key : keys) blocks.push_back(StreamOfPass(key, 3).Block(0));
  std::sort(blocks.begin(), blocks.end());
  CHECK(std::adjacent_find(blocks.begin(), blocks.end()) == blocks.end());
}

}  // namespace
}  // namespace lockstep::device
