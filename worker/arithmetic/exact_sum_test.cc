#include "worker/arithmetic/exact_sum.h"

#include <pmmintrin.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace lockstep::worker {
namespace {

using Floats = std::vector<float>;

uint32_t MagnitudeOf(const Floats& values) {
  std::vector<int64_t> unused(values.size());
  return QuantizeStore(values, kExponentUnset, absl::MakeSpan(unused));
}

uint32_t LargestMagnitude(const std::vector<Floats>& shards) {
  uint32_t largest = 0;
  for (const Floats& shard : shards) largest = std::max(largest, MagnitudeOf(shard));
  return largest;
}

// Sums the given shards in that order, as one rank would.
std::vector<int64_t> SumOf(const std::vector<Floats>& shards, const std::vector<size_t>& which, int32_t exponent) {
  std::vector<int64_t> sums(shards[0].size(), 0x5555555555555555);
  bool first = true;
  for (const size_t k : which) {
    if (first) {
      QuantizeStore(shards[k], exponent, absl::MakeSpan(sums));
    } else {
      QuantizeAdd(shards[k], exponent, absl::MakeSpan(sums));
    }
    first = false;
  }
  if (first) std::fill(sums.begin(), sums.end(), 0);
  return sums;
}

Floats FloatsOf(const std::vector<int64_t>& sums, int32_t exponent) {
  Floats values(sums.size());
  Dequantize(sums, exponent, absl::MakeSpan(values));
  return values;
}

std::vector<uint32_t> BitsOf(const Floats& values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// Gradients as they come: magnitudes over 2^-40 to 1 of the largest, both signs, some zeros and denormals.
std::vector<Floats> RandomShards(std::mt19937_64& random, size_t shards, size_t n, int top) {
  std::vector<Floats> result(shards, Floats(n));
  for (Floats& shard : result) {
    for (float& value : shard) {
      const double fraction = static_cast<double>(random() >> 11) * 0x1p-53 + 0.5;
      const int exponent = top - static_cast<int>(random() % 40);
      const double signed_fraction = random() % 2 == 0 ? fraction : -fraction;
      value = random() % 16 == 0 ? 0.0f : static_cast<float>(std::ldexp(signed_fraction, exponent));
    }
  }
  return result;
}

double UlpOf(float value) {
  const float next = std::nextafter(std::abs(value), std::numeric_limits<float>::infinity());
  return static_cast<double>(next) - std::abs(static_cast<double>(value));
}

TEST_CASE("exact sum: any split of the shards over any ranks in any order gives the same bits", "[exact]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const size_t count = 1 + random() % 24;
    const std::vector<Floats> shards =
        RandomShards(random, count, 1 + random() % 100, static_cast<int>(random() % 250) - 125);
    const uint32_t magnitude = LargestMagnitude(shards);
    if (magnitude == 0) continue;
    const int32_t exponent = FittingExponent(magnitude);
    std::vector<size_t> order(count);
    for (size_t k = 0; k < count; ++k) order[k] = k;
    const auto expected = BitsOf(FloatsOf(SumOf(shards, order, exponent), exponent));

    for (int trial = 0; trial < 5; ++trial) {
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::vector<size_t>> ranks(1 + random() % 6);
      for (const size_t k : order) ranks[random() % ranks.size()].push_back(k);
      std::vector<int64_t> total(shards[0].size(), 0);
      for (const auto& rank : ranks) AddInto(SumOf(shards, rank, exponent), absl::MakeSpan(total));
      CHECK(BitsOf(FloatsOf(total, exponent)) == expected);
    }
  }
}

TEST_CASE("exact sum: the error is below one ulp down to 2^-20 of the largest element", "[exact]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const size_t count = size_t{1} << random() % 9;
    const std::vector<Floats> shards = RandomShards(random, count, 64, static_cast<int>(random() % 200) - 100);
    const uint32_t magnitude = LargestMagnitude(shards);
    const int32_t exponent = FittingExponent(magnitude);
    std::vector<size_t> all(count);
    for (size_t k = 0; k < count; ++k) all[k] = k;
    const Floats sums = FloatsOf(SumOf(shards, all, exponent), exponent);

    std::vector<double> expected(64, 0.0);
    for (const Floats& shard : shards) {
      for (size_t i = 0; i < 64; ++i) expected[i] += static_cast<double>(shard[i]);
    }
    double largest = 0;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < 64; ++i) {
      if (std::abs(expected[i]) < std::ldexp(largest, -20)) continue;
      CHECK(std::abs(static_cast<double>(sums[i]) - expected[i]) < UlpOf(static_cast<float>(expected[i])));
    }
  }
}

TEST_CASE("exact sum: quantising rounds to nearest, ties to even", "[exact]") {
  const std::vector<std::pair<float, int64_t>> cases = {{0.5f, 0},   {1.5f, 2},   {2.5f, 2},  {-0.5f, 0},
                                                        {-1.5f, -2}, {-2.5f, -2}, {0.75f, 1}, {-0.75f, -1},
                                                        {0.25f, 0},  {3.0f, 3},   {-0.0f, 0}, {1e-45f, 0}};
  for (const auto& [value, expected] : cases) {
    // Nine of them: the vector part and the rest.
    std::vector<int64_t> sums(9);
    QuantizeStore(Floats(9, value), 0, absl::MakeSpan(sums));
    CHECK(sums == std::vector<int64_t>(9, expected));
  }
}

TEST_CASE("exact sum: converting back rounds to nearest float, ties to even, over the whole range", "[exact]") {
  const auto value_of = [](int64_t sum, int32_t exponent) {
    return FloatsOf(std::vector<int64_t>(9, sum), exponent)[0];
  };
  constexpr int64_t kTop = int64_t{1} << 62;

  // 2^24 + 1 lies between two floats; so does every power of it below.
  CHECK(value_of((1 << 24) + 1, 0) == 0x1p24f);
  CHECK(value_of((1 << 24) + 3, 0) == 0x1p24f + 4);
  CHECK(value_of(kTop, 0) == 0x1p62f);
  CHECK(value_of(-kTop, 0) == -0x1p62f);
  // A tie that only the lowest bit of 62 decides, which a double does not hold.
  const int64_t tie = (int64_t{1} << 61) + (int64_t{1} << 37);
  CHECK(value_of(tie, 0) == 0x1p61f);
  CHECK(value_of(tie + 1, 0) == 0x1p61f + 0x1p38f);
  CHECK(value_of(tie - 1, 0) == 0x1p61f);
  CHECK(value_of(-tie, 0) == -0x1p61f);
  CHECK(value_of(-tie - 1, 0) == -0x1p61f - 0x1p38f);
  CHECK(value_of(-tie + 1, 0) == -0x1p61f);
  // Denormal results, their tie, and a sum above the largest float.
  CHECK(value_of(1, -149) == 0x1p-149f);
  CHECK(value_of(3, -150) == 0x1p-148f);
  CHECK(value_of(1, -150) == 0.0f);
  CHECK(value_of(kTop, 80) == std::numeric_limits<float>::infinity());
}

TEST_CASE("exact sum: the AVX2 and the scalar kernels give the same bits", "[exact]") {
  if (!exact_sum_internal::HasAvx2()) return;
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    const size_t n = random() % 67;
    // Any bits at all: infinities, NaNs and overflowing values as well.
    Floats values(n);
    std::vector<int64_t> sums(n);
    for (size_t i = 0; i < n; ++i) {
      values[i] = std::bit_cast<float>(static_cast<uint32_t>(random()) & (trial % 2 == 0 ? 0xffffffffu : 0xbfffffffu));
      sums[i] = static_cast<int64_t>(random()) >> (2 + random() % 62);
    }
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 200) - 50);
    for (const bool add : {false, true}) {
      std::vector<int64_t> scalar = sums, vector = sums;
      const auto count = static_cast<int64_t>(n);
      const uint32_t a = exact_sum_internal::ScalarQuantize(values.data(), count, scale, add, scalar.data());
      const uint32_t b = exact_sum_internal::Avx2Quantize(values.data(), count, scale, add, vector.data());
      CHECK(a == b);
      // Where the magnitude is not finite the sums mean nothing.
      if (!IsNonFinite(a)) CHECK(scalar == vector);
    }
    Floats scalar(n), vector(n);
    exact_sum_internal::ScalarDequantize(sums.data(), static_cast<int64_t>(n), 1.0 / scale, scalar.data());
    exact_sum_internal::Avx2Dequantize(sums.data(), static_cast<int64_t>(n), 1.0 / scale, vector.data());
    CHECK(BitsOf(scalar) == BitsOf(vector));
  }
}

// The shards' sum as one rank forms it.
Floats SumByIntegers(const std::vector<Floats>& shards, int32_t exponent) {
  std::vector<size_t> all(shards.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return FloatsOf(SumOf(shards, all, exponent), exponent);
}

TEST_CASE("exact sum: whether ranks contribute values or integers, the sum has the same bits", "[exact]") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    // Up to 8 values go another way than more of them, or some with integers.
    const std::vector<Floats> shards = RandomShards(random, 1 + random() % 12, 1 + random() % 70, -3);
    const int32_t exponent = FittingExponent(LargestMagnitude(shards)) + static_cast<int32_t>(random() % 8);
    const size_t n = shards[0].size();
    const auto expected = BitsOf(SumByIntegers(shards, exponent));
    // Each shard by itself, or together with the next one as integers.
    std::vector<std::vector<int64_t>> sums;
    std::vector<ExactAddends> values, mixed;
    for (const Floats& shard : shards) values.push_back({.values = shard});
    for (size_t k = 0; k < shards.size();) {
      const size_t together = std::min<size_t>(random() % 3, shards.size() - k);
      if (together == 0) {
        mixed.push_back(values[k++]);
        continue;
      }
      sums.emplace_back(n);
      for (size_t i = 0; i < together; ++i, ++k) {
        AddExactly(values[k], exponent, /*store=*/i == 0, absl::MakeSpan(sums.back()));
      }
      mixed.push_back({.integers = sums.back()});
    }
    for (const auto& addends : {values, mixed}) {
      Floats out(n, -1), scalar(n, -1);
      SumExactly(addends, exponent, absl::MakeSpan(out));
      CHECK(BitsOf(out) == expected);
      exact_sum_internal::ScalarSum(addends, exponent, absl::MakeSpan(scalar));
      CHECK(BitsOf(scalar) == expected);
    }
  }
}

TEST_CASE("exact sum: two values around where quantising begins to round", "[exact]") {
  // The exponents at which that is the smallest and largest normal magnitude too, and beyond.
  for (const int32_t exponent : {-200, -151, -150, -149, -148, -60, 0, 70, 76, 77, 78}) {
    CAPTURE(exponent);
    const float limit = static_cast<float>(std::ldexp(1.0, std::clamp(exponent + 23, -149, 127)));
    std::vector<float> candidates = {0.0f, -0.0f};
    if (!Overflows(1, exponent)) candidates.insert(candidates.end(), {1e-45f, -1e-45f});
    for (const float near : {limit, limit / 2, limit / 4, 2 * limit}) {
      for (const float value : {near, std::nextafter(near, 0.0f), std::nextafter(near, INFINITY)}) {
        const uint32_t magnitude = std::bit_cast<uint32_t>(std::abs(value));
        if (IsNonFinite(magnitude) || Overflows(magnitude, exponent)) continue;
        candidates.push_back(value);
        candidates.push_back(-value);
      }
    }
    Floats a, b;
    for (const float x : candidates) {
      for (const float y : candidates) {
        // Eight of each pair: by themselves in a vector, all of them go the same way.
        a.insert(a.end(), 8, x);
        b.insert(b.end(), 8, y);
      }
    }
    Floats out(a.size());
    SumExactly({{.values = a}, {.values = b}}, exponent, absl::MakeSpan(out));
    CHECK(BitsOf(out) == BitsOf(SumByIntegers({a, b}, exponent)));
  }
}

TEST_CASE("exact sum: eight values at the limit are summed exactly", "[exact]") {
  // 2^50 units each and a few units: the sum has 53 bits.
  const Floats large(8, 0x1p50f), small(8, 3);
  std::vector<ExactAddends> addends(7, {.values = large});
  addends.push_back({.values = small});
  Floats out(8);
  SumExactly(addends, 0, absl::MakeSpan(out));
  for (const float value : out) CHECK(value == static_cast<float>(7 * 0x1p50 + 3));
  addends.back() = {.values = large};
  SumExactly(addends, 0, absl::MakeSpan(out));
  for (const float value : out) CHECK(value == 0x1p53f);
}

TEST_CASE("exact sum: without an exponent the sum is zero, whatever is contributed", "[exact]") {
  const Floats values(9, 1.0f);
  const std::vector<int64_t> integers(9, 5);
  Floats out(9, -1);
  SumExactly({{.values = values}, {.integers = integers}}, kExponentUnset, absl::MakeSpan(out));
  CHECK(out == Floats(9, 0.0f));
}

TEST_CASE("exact sum: the parts of runs that lie in a piece", "[exact]") {
  const std::vector<ExactRun> runs = {{0, 4, -1}, {6, 10, -2}, {16, 1, -3}, {20, 5, -4}};
  const auto parts = [&](int64_t begin, int64_t end) {
    std::vector<ExactRun> found;
    ForEachRunIn(runs, begin, end, [&](const ExactRun& part) { found.push_back(part); });
    return found;
  };
  CHECK(parts(0, 25) == runs);
  CHECK(parts(2, 7) == std::vector<ExactRun>{{2, 2, -1}, {6, 1, -2}});
  CHECK(parts(4, 6).empty());
  CHECK(parts(8, 10) == std::vector<ExactRun>{{8, 2, -2}});
  CHECK(parts(15, 21) == std::vector<ExactRun>{{15, 1, -2}, {16, 1, -3}, {20, 1, -4}});
  CHECK(parts(25, 30).empty());
}

TEST_CASE("exact sum: a thread that flushes denormals or rounds otherwise gets the same bits", "[exact]") {
  const Floats values = {1e-45f, -3e-42f, 1.17549435e-38f, 5e-39f, 0.3f, -0.7f, 1e-40f, 2e-38f, 9e-41f};
  const int32_t exponent = FittingExponent(std::bit_cast<uint32_t>(5e-39f));
  std::vector<int64_t> plain(values.size()), odd(values.size());
  QuantizeStore(values, exponent, absl::MakeSpan(plain));
  const auto expected = BitsOf(FloatsOf(plain, exponent));

  const unsigned saved = _mm_getcsr();
  _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
  _MM_SET_DENORMALS_ZERO_MODE(_MM_DENORMALS_ZERO_ON);
  _MM_SET_ROUNDING_MODE(_MM_ROUND_TOWARD_ZERO);
  const unsigned mode = _mm_getcsr() & ~0x3fu;
  QuantizeStore(values, exponent, absl::MakeSpan(odd));
  Floats back(values.size());
  Dequantize(odd, exponent, absl::MakeSpan(back));
  const unsigned after = _mm_getcsr() & ~0x3fu;
  _mm_setcsr(saved);

  CHECK(odd == plain);
  CHECK(BitsOf(back) == expected);
  CHECK(after == mode);
}

TEST_CASE("exact sum: one non-finite element gives its tensor away, and beats overflow", "[exact]") {
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at = 0; at < 19; ++at) {
      Floats values(19, 3e38f);
      values[at] = bad;
      std::vector<int64_t> sums(19);
      const uint32_t magnitude = QuantizeStore(values, 0, absl::MakeSpan(sums));
      CHECK(IsNonFinite(magnitude));
      CHECK(Judge(magnitude, 0) == TensorVerdict::kNonFinite);
      CHECK(Judge(magnitude, kExponentUnset) == TensorVerdict::kNonFinite);
      CHECK(NextExponent(magnitude, -7) == -7);
    }
  }
  CHECK_FALSE(IsNonFinite(MagnitudeOf({std::numeric_limits<float>::max()})));
}

TEST_CASE("exact sum: an element beyond 2^50 units asks for one redo, with an exponent that fits", "[exact]") {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  CHECK_FALSE(Overflows(bits(0x1p50f), 0));
  CHECK(Overflows(bits(std::nextafter(0x1p50f, 0x1p60f)), 0));
  CHECK(Judge(bits(0x1p50f), 0) == TensorVerdict::kGood);
  CHECK(Judge(bits(0x1p51f), 0) == TensorVerdict::kRedo);
  // Far below the window, and the smallest that is still inside.
  CHECK(Judge(bits(std::ldexp(1.0f, kFloorBits)), 0) == TensorVerdict::kGood);
  CHECK(Judge(bits(std::nextafter(std::ldexp(1.0f, kFloorBits), 0.0f)), 0) == TensorVerdict::kRedo);
  CHECK(Judge(bits(1.0f), kExponentUnset) == TensorVerdict::kRedo);
  CHECK(Judge(0, kExponentUnset) == TensorVerdict::kGood);
  CHECK(Judge(0, 5) == TensorVerdict::kGood);

  std::mt19937_64 random(3);
  for (int i = 0; i < 10000; ++i) {
    const uint32_t magnitude = 1 + static_cast<uint32_t>(random()) % (kNonFiniteBits - 1);
    const int32_t exponent = FittingExponent(magnitude);
    // The redo that follows is the last one.
    CHECK(Judge(magnitude, exponent) == TensorVerdict::kGood);
    // As promised of the headroom: kHeadroomBits and no more are free above it.
    const double q = std::ldexp(static_cast<double>(std::bit_cast<float>(magnitude)), -exponent);
    CHECK(q < std::ldexp(1.0, kMaxBits - kHeadroomBits));
    CHECK(q >= std::ldexp(1.0, kMaxBits - kHeadroomBits - 1));
  }
}

TEST_CASE("exact sum: the next exponent rises at once, falls by one, and a zero keeps it", "[exact]") {
  const auto bits = [](float value) { return std::bit_cast<uint32_t>(value); };
  const int32_t exponent = FittingExponent(bits(1.0f));
  CHECK(NextExponent(bits(1.0f), exponent) == exponent);
  CHECK(NextExponent(bits(2.0f), exponent) == exponent + 1);
  CHECK(NextExponent(bits(4.0f), exponent) == exponent + 2);
  CHECK(NextExponent(bits(0.5f), exponent) == exponent - 1);
  CHECK(NextExponent(bits(0.001f), exponent) == exponent - 1);
  CHECK(NextExponent(0, exponent) == exponent);
  CHECK(NextExponent(0, kExponentUnset) == kExponentUnset);
  CHECK(NextExponent(bits(1.0f), kExponentUnset) == exponent);
}

TEST_CASE("exact sum: 4096 shards at the limit do not overflow the sum", "[exact]") {
  const float limit = 0x1p50f;
  for (const float value : {limit, -limit}) {
    std::vector<int64_t> sums(9);
    QuantizeStore(Floats(9, value), 0, absl::MakeSpan(sums));
    for (int k = 1; k < kMaxLogicalShards; ++k) QuantizeAdd(Floats(9, value), 0, absl::MakeSpan(sums));
    CHECK(FloatsOf(sums, 0) == Floats(9, value * 4096.0f));
  }
}

TEST_CASE("exact sum: without an exponent the sums are zero and the magnitude is found", "[exact]") {
  std::vector<int64_t> sums(5, 9);
  CHECK(QuantizeStore(Floats{0, -2, 1, 0, 0}, kExponentUnset, absl::MakeSpan(sums)) == std::bit_cast<uint32_t>(2.0f));
  CHECK(sums == std::vector<int64_t>(5, 0));
  CHECK(QuantizeAdd(Floats{0, 0, 0, 3, 0}, kExponentUnset, absl::MakeSpan(sums)) == std::bit_cast<uint32_t>(3.0f));
  CHECK(FloatsOf(sums, kExponentUnset) == Floats(5, 0.0f));
}

}  // namespace
}  // namespace lockstep::worker
