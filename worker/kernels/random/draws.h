// The formulas of UniformLike and NormalLike, shared by all devices.
//
// Random bits come in blocks of four (common/random/random.h), and an element of Y depends on its block alone:
// UniformLike uses one number per element; NormalLike makes two normal numbers of each pair of numbers by the method of
// Box and Muller ("A note on the generation of random normal deviates", 1958). All is in float32 without branches, so
// that the compiler can vectorise loops.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_RANDOM_DRAWS_H_
#define LOCKSTEP_WORKER_KERNELS_RANDOM_DRAWS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/math/host_device.h"
#include "common/math/math.h"
#include "common/random/random.h"

namespace lockstep::device {

// The random stream of a node in a pass. `key` is the graph's input kRandomInput: {seed, step, logical shard, pass}.
LS_HD inline RandomStream StreamOfPass(const int64_t* key, uint64_t stream) {
  return RandomStream::For(static_cast<uint64_t>(key[0]), stream, static_cast<uint64_t>(key[1]),
                           static_cast<uint32_t>(key[2]), static_cast<uint32_t>(key[3]));
}

// A uniform number in (0, 1): an odd multiple of 2^-24, so that its logarithm is finite.
[[gnu::always_inline]] LS_HD inline float Uniform(uint32_t bits) {
  return (static_cast<float>(static_cast<int32_t>(bits >> 9)) + 0.5f) * 0x1p-23f;
}

// Two independent standard normal numbers: `a` gives the radius, `b` the angle.
[[gnu::always_inline]] LS_HD inline void NormalPair(uint32_t a, uint32_t b, float* first, float* second) {
  const float chance = (static_cast<float>(static_cast<int32_t>(a >> 1)) + 0.5f) * 0x1p-31f;  // in (0, 1]
  const float distance = SquareRoot(-2.0f * Log(chance));
  // The angle is a number of quarter turns plus a remainder x between -1/8 and 1/8 of a turn.
  const float x = static_cast<float>(static_cast<int32_t>(b << 2)) * (0x1p-31f * 0x1.921fb6p-1f);
  const float z = x * x;
  float sine = 1.0f / 362880.0f;
  sine = sine * z - 1.0f / 5040.0f;
  sine = sine * z + 1.0f / 120.0f;
  sine = sine * z - 1.0f / 6.0f;
  sine = x + x * z * sine;
  float cosine = 1.0f / 40320.0f;
  cosine = cosine * z - 1.0f / 720.0f;
  cosine = cosine * z + 1.0f / 24.0f;
  cosine = 1.0f - 0.5f * z + z * z * cosine;
  const bool swaps = (b & 0x40000000u) != 0;
  const float side = (b & 0x80000000u) != 0 ? -distance : distance;
  *first = side * (swaps ? sine : cosine);
  *second = side * (swaps ? cosine : sine);
}

[[gnu::always_inline]] LS_HD inline std::array<float, 4> UniformBlock(const std::array<uint32_t, 4>& bits) {
  return {Uniform(bits[0]), Uniform(bits[1]), Uniform(bits[2]), Uniform(bits[3])};
}

[[gnu::always_inline]] LS_HD inline std::array<float, 4> NormalBlock(const std::array<uint32_t, 4>& bits) {
  std::array<float, 4> normal = {};
  NormalPair(bits[0], bits[1], &normal[0], &normal[1]);
  NormalPair(bits[2], bits[3], &normal[2], &normal[3]);
  return normal;
}

// Scales a drawn number: a + slope * drawn, where `slope` is b - a for UniformLike and b for NormalLike.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Placed(float drawn, T a, T slope) {
  return a + slope * static_cast<T>(drawn);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_RANDOM_DRAWS_H_
