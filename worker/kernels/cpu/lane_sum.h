// Sums in a fixed order that the compiler can vectorise.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_LANE_SUM_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_LANE_SUM_H_

#include <cstdint>

#include "worker/kernels/cpu/code.h"

namespace lockstep::device::cpu::LS_CODE {

inline constexpr int64_t kLanes = 32;

// Of fewer lanes, if there are no more elements: the others of the sum below are zero, and adding them changes no bit.
template <int64_t kFew, typename Value>
[[gnu::always_inline]] inline double FewLanes(int64_t count, const Value& value) {
  double lanes[kFew] = {};
  for (int64_t l = 0; l < count; ++l) lanes[l] += value(l);
#pragma GCC unroll 4
  for (int64_t half = kFew / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The sum of value(i) for i in [0, count) in float64. Lane l sums elements l, l + 32, ...; then the upper half of the
// lanes is added to the lower half until one is left.
template <typename Value>
double LaneSum(int64_t count, const Value& value) {
  if (count <= 4) return FewLanes<4>(count, value);
  if (count <= 16) return FewLanes<16>(count, value);
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += value(i + l);
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[l] += value(i);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

// The largest of `count` >= 1 numbers; unspecified if one of them is NaN.
inline float LaneMax(const float* x, int64_t count) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = x[0];
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[l] = x[i] > lanes[l] ? x[i] : lanes[l];
  float largest = lanes[0];
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_LANE_SUM_H_
