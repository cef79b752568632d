#include "common/tensor/poison.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "common/tensor/bf16.h"

namespace lockstep {
namespace {

// Eight elements of poisoned memory.
template <typename T>
std::array<T, 8> Poisoned() {
  std::array<T, 8> values{};
  Poison({reinterpret_cast<std::byte*>(values.data()), sizeof values});
  return values;
}

TEST_CASE("poison: no number of any floating type, and no index of any integer type", "[tensor]") {
  for (const float value : Poisoned<float>()) CHECK(std::isnan(value));
  for (const double value : Poisoned<double>()) CHECK(std::isnan(value));
  for (const Bf16 value : Poisoned<Bf16>()) CHECK(std::isnan(static_cast<float>(value)));
  const int64_t most = int64_t{2'000'000'000};
  for (const int64_t value : Poisoned<int64_t>()) CHECK(value > most);
  for (const int32_t value : Poisoned<int32_t>()) CHECK(value > most);
  for (const int16_t value : Poisoned<int16_t>()) CHECK(value > 32'000);
  for (const uint8_t value : Poisoned<uint8_t>()) CHECK(value > 1);  // as a bool
}

TEST_CASE("poison: is told from anything else", "[tensor]") {
  std::vector<std::byte> memory(20);
  Poison(absl::MakeSpan(memory));
  CHECK(IsPoison(memory));
  memory.back() = std::byte{0};
  CHECK_FALSE(IsPoison(memory));
  CHECK_FALSE(IsPoison({}));
}

TEST_CASE("poison: signalling NaNs, but for what has to be one of F64 at the same time", "[tensor]") {
  constexpr uint32_t kQuietF32 = 1u << 22;
  constexpr uint64_t kQuietF64 = uint64_t{1} << 51;
  constexpr uint16_t kQuietBf16 = 1u << 6;

  const std::array<uint32_t, 8> words = Poisoned<uint32_t>();
  for (size_t i = 0; i < words.size(); i += 2) CHECK((words[i] & kQuietF32) == 0);
  const std::array<uint16_t, 8> halves = Poisoned<uint16_t>();
  for (size_t i = 0; i < halves.size(); ++i) CHECK(((halves[i] & kQuietBf16) == 0) == (i % 4 != 3));
  for (const uint64_t word : Poisoned<uint64_t>()) CHECK((word & kQuietF64) == 0);
}

TEST_CASE("poison: debug builds and builds under a sanitizer poison memory, others do not", "[tensor]") {
#ifdef NDEBUG
  const bool debug = false;
#else
  const bool debug = true;
#endif
  const bool sanitizer = std::getenv("LOCKSTEP_SANITIZER") != nullptr;  // set by the configurations in .bazelrc

  CHECK(kPoisonsMemory == (debug || sanitizer));
}

}  // namespace
}  // namespace lockstep
