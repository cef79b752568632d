// The arithmetic of updates that scale the step of a parameter as a whole, and the order of the sums that they need:
// what the loops of a CPU and the kernels of a GPU both go by. Such an update has two phases: the slots move, and the
// squares of the parameter and of the direction are summed; then every element moves by the direction times one rate.
// The direction is computed again in the second phase, from what the first one left.
//
// Sums are of float64. Over a parameter: in blocks of kNormBlock elements, whose sums are added in their order. Within
// a block lane l sums the elements l, l + kNormLanes, ...; then lanes are folded by FoldLanes. Over a row, and over the
// means of rows: the same with the lanes of FoldWarp and without blocks. Over a column: in blocks of kNormRows rows,
// one row after another.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ARITHMETIC_NORM_FORMULAS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_NORM_FORMULAS_H_

#include <cstdint>

#include "common/math/host_device.h"
#include "common/math/math.h"
#include "worker/arithmetic/update_formulas.h"

namespace lockstep::device {

inline constexpr int64_t kNormBlock = 4096;
inline constexpr int64_t kNormLanes = 256;
inline constexpr int64_t kNormWarp = 32;
inline constexpr int64_t kNormRows = 256;

constexpr bool GoesByNorms(const UpdateFormula& formula) {
  return formula.kind == UpdateFormula::Kind::kLamb || formula.kind == UpdateFormula::Kind::kAdafactor;
}

// The sum of kNormWarp lanes, at distances 16, 8, 4, 2 and 1, as a warp of a GPU folds them. Uses up the lanes.
[[gnu::always_inline]] inline double FoldWarp(double* lanes) {
  for (int64_t distance = kNormWarp / 2; distance > 0; distance /= 2) {
    for (int64_t l = 0; l < distance; ++l) lanes[l] += lanes[l + distance];
  }
  return lanes[0];
}

// The sum of kNormLanes lanes: warp by warp, then one after another.
[[gnu::always_inline]] inline double FoldLanes(double* lanes) {
  double sum = FoldWarp(lanes);
  for (int64_t w = kNormWarp; w < kNormLanes; w += kNormWarp) sum += FoldWarp(lanes + w);
  return sum;
}

// Over all elements of a parameter.
struct NormSquares {
  double value = 0;
  double direction = 0;
};

// Exact.
LS_HD [[gnu::always_inline]] inline double SquareOf(float x) { return static_cast<double>(x) * static_cast<double>(x); }

// The second phase: the new value of an element.
LS_HD [[gnu::always_inline]] inline float SteppedValue(const UpdateScalars& s, float rate, float value,
                                                       float direction) {
  return value * s.decay - rate * direction;
}

// --- LAMB ---

LS_HD [[gnu::always_inline]] inline void MoveLambMeans(const UpdateScalars& s, float sum, float& mean, float& square) {
  const float gradient = MeanGradient(s, sum);
  mean = mean + s.one_minus_beta1 * (gradient - mean);
  square = s.beta2 * square + s.one_minus_beta2 * (gradient * gradient);
}

LS_HD [[gnu::always_inline]] inline float LambDirection(const UpdateScalars& s, float value, float mean, float square) {
  const float denominator = SquareRoot(square) / s.correction2 + s.epsilon;
  return s.step_size * (mean / denominator) + s.weight_decay * value;
}

// The norm of the parameter by that of the direction; 1 where either is 0, and for what does not scale. At most the
// largest float.
LS_HD [[gnu::always_inline]] inline float LambScale(const UpdateScalars& s, const NormSquares& sums) {
  constexpr double kLargest = 0x1.fffffep127;
  if (!s.scales || sums.value == 0 || sums.direction == 0) return 1.0f;
  const double ratio = SquareRoot(sums.value) / SquareRoot(sums.direction);
  return static_cast<float>(ratio > kLargest ? kLargest : ratio);
}

// --- Adafactor ---

// A mean of squares, moved to a new one.
LS_HD [[gnu::always_inline]] inline float MovedSquare(const UpdateScalars& s, float kept, double mean) {
  return kept + s.one_minus_beta2 * (static_cast<float>(mean) - kept);
}

// What the estimates of a row's squares have in common, of its mean and of the mean of all rows of the matrix. An
// estimate is this times the mean of the column.
LS_HD [[gnu::always_inline]] inline float RowShare(const UpdateScalars& s, float row, float mean) {
  return row / (mean < s.epsilon ? s.epsilon : mean);
}

LS_HD [[gnu::always_inline]] inline float AdafactorDirection(const UpdateScalars& s, float sum, float square) {
  return MeanGradient(s, sum) / SquareRoot(square < s.least_square ? s.least_square : square);
}

LS_HD [[gnu::always_inline]] inline float AdafactorScale(const UpdateScalars& s, const NormSquares& sums,
                                                         int64_t size) {
  const auto elements = static_cast<double>(size);
  const double of_value = SquareRoot(sums.value / elements);
  const double of_direction = SquareRoot(sums.direction / elements) / static_cast<double>(s.max_rms);
  const auto least = static_cast<double>(s.min_scale);
  return static_cast<float>((of_value > least ? of_value : least) / (of_direction > 1.0 ? of_direction : 1.0));
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_ARITHMETIC_NORM_FORMULAS_H_
