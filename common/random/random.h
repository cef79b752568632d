// Counter-based random numbers: value(seed, stream, step, shard, pass, element) is a pure function, so that initial
// weights and dropout never depend on order, threads or the number of workers. Philox4x32-10 (Salmon, Moraes, Dror and
// Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011). No libm; header only, so that kernels can include it.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_RANDOM_RANDOM_H_
#define LOCKSTEP_COMMON_RANDOM_RANDOM_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// Ten rounds of Philox4x32.
constexpr std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// An endless sequence of 32-bit numbers with random access, identified by the values that it is derived from.
class RandomStream {
 public:
  // The sequence of a job's seed and a stream number, for numbers that do not depend on a step (initial values).
  static constexpr RandomStream For(uint64_t seed, uint64_t stream) {
    return RandomStream(Split(seed)).Derive(static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32), 1, 0);
  }

  // The sequence of one pass of one logical shard in one step (dropout).
  static constexpr RandomStream For(uint64_t seed, uint64_t stream, uint64_t step, uint32_t shard, uint32_t pass) {
    return RandomStream(Split(seed))
        .Derive(static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32), 2, 0)
        .Derive(static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), shard, pass);
  }

  // Numbers 4 * block to 4 * block + 3.
  constexpr std::array<uint32_t, 4> Block(uint64_t block) const {
    return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}, key_);
  }

  // What Block's rounds begin with, for those who compute many blocks at a time.
  constexpr std::array<uint32_t, 2> key() const { return key_; }

  // The number at `element`.
  constexpr uint32_t At(uint64_t element) const { return Block(element / 4)[element % 4]; }

 private:
  explicit constexpr RandomStream(std::array<uint32_t, 2> key) : key_(key) {}

  static constexpr std::array<uint32_t, 2> Split(uint64_t value) {
    return {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
  }

  constexpr RandomStream Derive(uint32_t a, uint32_t b, uint32_t c, uint32_t d) const {
    const std::array<uint32_t, 4> mixed = Philox4x32({a, b, c, d}, key_);
    return RandomStream(std::array<uint32_t, 2>{mixed[0] ^ mixed[2], mixed[1] ^ mixed[3]});
  }

  std::array<uint32_t, 2> key_;
};

// The stream number of a name: 64-bit FNV-1a.
constexpr uint64_t StreamOfName(absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

// Uniform in [-1, 1), a multiple of 2^-23: exact in float.
constexpr float SymmetricUnit(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 8) - (1 << 23)) * 0x1p-23f;
}

// An element is dropped iff its 32-bit number is below this: ratio * 2^32, rounded down. REQUIRES: 0 <= ratio < 1.
constexpr uint32_t DropThreshold(double ratio) { return static_cast<uint32_t>(ratio * 4294967296.0); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RANDOM_RANDOM_H_
