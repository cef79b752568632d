// The arithmetic that follows the passes of a step, on device memory: quantises gradients and sums them exactly,
// converts sums to floats, clips, updates parameters, and accumulates the outputs that a step reports. Each call covers
// a whole table of tensors, so that a GPU needs one or two launches for it. Tables are made once and used in every
// step.
//
// Every call only queues work in `stream`. All pointers, those to scalars included, are to device memory, aligned to
// their type; tables and scalars passed by value are copied by the call. The formulas are those of exact_formulas.h and
// update_formulas.h; norm_formulas.h has the order of the sums that updates need. All devices compute the same bits,
// except for SumSquares, whose order within a block is the device's own.
//
// Invariants
//   * Results are a function of the arguments alone: not of the stream, the partition of work, or the device's size.
//   * Nothing outside the tables' ranges is written; padding between tensors of a flat run is not read either.
//
// Threading: owned by the device's owner thread. A table may be used in any stream of the device, but not in two at a
// time, and may be dropped when no queued work uses it.
#ifndef LOCKSTEP_WORKER_DEVICE_STEP_MATH_H_
#define LOCKSTEP_WORKER_DEVICE_STEP_MATH_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/arithmetic/exact_formulas.h"
#include "worker/arithmetic/update_formulas.h"
#include "worker/device/device.h"

namespace lockstep::device {

// One tensor of a flat run (a bucket, or several). Runs of sums and of floats have the same ranges.
struct TensorRange {
  int64_t begin = 0;  // first element, counted from the run's start; a multiple of 16
  int64_t size = 0;   // elements, > 0
  int32_t index = 0;  // index of the tensor's exponent, magnitude and sum of squares
};

// One parameter with the arrays of its update, which do not overlap: `size` elements each, except adafactor's slots.
struct UpdateTensor {
  int64_t size = 0;
  float* value = nullptr;
  const float* gradient = nullptr;  // the reduced sum, before division by UpdateScalars::denominator
  float* slots[2] = {};             // null: unused by the formula
  float* average = nullptr;         // null: the job keeps no average
  bool decays = true;               // false: updated with the scalars of WithoutDecay
  TrailingMatrix shape = {};
};

// A running statistic of the model.
struct StatisticTensor {
  int64_t size = 0;
  float* running = nullptr;
  double momentum = 0;
};

// One output of a pass, whose elements, divided by `divisor`, are added to `size` totals.
struct PassOutput {
  int64_t size = 0;
  const float* values = nullptr;
  double divisor = 1;
};

// The device's form of tables of the structs above.
class TensorTable {
 public:
  virtual ~TensorTable() = default;
};
class UpdateTable {
 public:
  virtual ~UpdateTable() = default;
};
class StatisticTable {
 public:
  virtual ~StatisticTable() = default;
};
class OutputTable {
 public:
  virtual ~OutputTable() = default;
};

// Whether a result is stored (the first of several addends) or added to the present value.
enum class Accumulate : uint8_t { kStore, kAdd };

// The block size of SumSquares, in elements from a tensor's first.
inline constexpr int64_t kSquaresBlock = 4096;

class StepMath {
 public:
  virtual ~StepMath() = default;

  // REQUIRES: ranges ascend and do not overlap, and indices are unique. ResourceExhausted names the size.
  virtual absl::StatusOr<std::unique_ptr<TensorTable>> MakeTensorTable(absl::Span<const TensorRange> ranges) = 0;
  // For updates by `formula`.
  virtual absl::StatusOr<std::unique_ptr<UpdateTable>> MakeUpdateTable(const UpdateFormula& formula,
                                                                       absl::Span<const UpdateTensor> tensors) = 0;
  virtual absl::StatusOr<std::unique_ptr<StatisticTable>> MakeStatisticTable(
      absl::Span<const StatisticTensor> tensors) = 0;
  virtual absl::StatusOr<std::unique_ptr<OutputTable>> MakeOutputTable(absl::Span<const PassOutput> outputs) = 0;

  // Quantises the tensors of the run at `values` with exponents[index], and stores or adds the integers to the run at
  // `sums`. magnitudes[index] becomes the maximum of its old value and the tensor's magnitudes (MagnitudeOf). With
  // kExponentUnset the sums are zeroed (kStore) or left alone (kAdd). The sums of a tensor whose magnitude is
  // non-finite or needs more than 50 bits are unspecified.
  virtual absl::Status Quantize(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                                const int32_t* exponents, int64_t* sums, uint32_t* magnitudes) = 0;
  // Only updates the magnitudes, as Quantize.
  virtual absl::Status FindMagnitudes(Stream& stream, const TensorTable& tensors, const float* values,
                                      uint32_t* magnitudes) = 0;
  // values = sums * 2^exponents[index], rounded once, for elements [begin, end) of the run that belong to tensors; zero
  // with kExponentUnset.
  virtual absl::Status Dequantize(Stream& stream, const TensorTable& tensors, int64_t begin, int64_t end,
                                  const int64_t* sums, const int32_t* exponents, float* values) = 0;
  // Stores or adds the tensors of the run at `values` to the run at `sums`.
  virtual absl::Status AddFloats(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                                 float* sums) = 0;

  // sums[index] = the sum of the tensor's squares in float64. Each block of kSquaresBlock elements is summed by itself,
  // in an order that depends only on the block's size; then the blocks' sums are added in order.
  virtual absl::Status SumSquares(Stream& stream, const TensorTable& tensors, const float* values, double* sums) = 0;
  // *clip = ClipFactor(sums[0] + sums[1] + ..., added in this order to zero, denominator, max_norm).
  virtual absl::Status FindClip(Stream& stream, const double* sums, int64_t count, double denominator, double max_norm,
                                float* clip) = 0;

  // Updates every tensor in place, then moves its average towards the new value, or copies it with copies_average.
  // `clip`: replaces scalars.clip; null: scalars.clip is used.
  virtual absl::Status Update(Stream& stream, const UpdateTable& tensors, const UpdateScalars& scalars,
                              const float* clip) = 0;
  // Moves every element of the statistics towards its mean (MovedStatistic). `means`: one per element, tensor by
  // tensor.
  virtual absl::Status MoveStatistics(Stream& stream, const StatisticTable& tensors, const double* means) = 0;

  // totals[i] += values[i] / divisor in float64. `totals`: one per element, output by output.
  virtual absl::Status AddOutputs(Stream& stream, const OutputTable& outputs, double* totals) = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_STEP_MATH_H_
