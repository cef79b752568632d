// The arithmetic of a step behind its passes, on device memory: quantising gradients and adding them up exactly,
// turning sums into floats again, clipping, the update, and what a step reports. Each call covers a whole table of
// tensors, so that a GPU launches one kernel for it; tables are made once, like kernels, and used every step.
//
// Every call only queues work in `stream`. All addresses are device memory, aligned to what they point to, and so are
// the scalars that are passed by address; tables and scalars passed by value are taken over when the call returns.
// The formulas stand in exact_formulas.h and update_formulas.h. Calls differ from a device to the next in no bit, but
// for SumSquares, whose order within a block is the device's own.
//
// Invariants
//   * Results are a function of the arguments alone: not of streams, of how work is split, or of the size of the
//   device.
//   * Nothing outside the tables' ranges is written; what lies between tensors of a flat run is neither read.
// Threading: as device.h. Tables may be used by any stream of the device, by one at a time, and dropped when no queued
// work uses them.
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
  int64_t begin = 0;  // its first element, counted from the run's start; a multiple of 16
  int64_t size = 0;   // elements, > 0
  int32_t index = 0;  // of its exponent, its magnitude, or its sum of squares
};

// One parameter with all that its update touches: `size` elements each. Nothing of it overlaps.
struct UpdateTensor {
  int64_t size = 0;
  float* value = nullptr;
  const float* gradient = nullptr;  // the reduced sum, not yet divided
  float* slots[2] = {};             // null: the formula has none
  float* average = nullptr;         // null: none is kept
  bool decays = true;               // false: updated with weight_decay 0 and decay 1
};

// A running statistic of the model.
struct StatisticTensor {
  int64_t size = 0;
  float* running = nullptr;
  double momentum = 0;
};

// One output of a pass: its elements are added to `size` totals, divided by `divisor`.
struct PassOutput {
  int64_t size = 0;
  const float* values = nullptr;
  double divisor = 1;
};

// What the tables above became on a device.
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

// Whether the first of several addends is stored, or added to what is there.
enum class Accumulate : uint8_t { kStore, kAdd };

// The sums of SumSquares are formed in blocks of so many elements of a tensor, counted from its first.
inline constexpr int64_t kSquaresBlock = 4096;

class StepMath {
 public:
  virtual ~StepMath() = default;

  // REQUIRES: ranges ascend and do not overlap, and no index comes twice. ResourceExhausted names the size.
  virtual absl::StatusOr<std::unique_ptr<TensorTable>> MakeTensorTable(absl::Span<const TensorRange> ranges) = 0;
  virtual absl::StatusOr<std::unique_ptr<UpdateTable>> MakeUpdateTable(absl::Span<const UpdateTensor> tensors) = 0;
  virtual absl::StatusOr<std::unique_ptr<StatisticTable>> MakeStatisticTable(
      absl::Span<const StatisticTensor> tensors) = 0;
  virtual absl::StatusOr<std::unique_ptr<OutputTable>> MakeOutputTable(absl::Span<const PassOutput> outputs) = 0;

  // Quantises the tensors of the run that begins at `values` with exponents[index], and stores or adds the integers in
  // the run that begins at `sums`. magnitudes[index] becomes the largest of what it was and of the tensor's magnitudes
  // (MagnitudeOf). With kExponentUnset the sums are zeroed (kStore) or left alone (kAdd). Sums of a tensor whose
  // magnitude is not finite, or needs more than 50 bits, mean nothing.
  virtual absl::Status Quantize(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                                const int32_t* exponents, int64_t* sums, uint32_t* magnitudes) = 0;
  // Only the magnitudes, as above.
  virtual absl::Status FindMagnitudes(Stream& stream, const TensorTable& tensors, const float* values,
                                      uint32_t* magnitudes) = 0;
  // Elements [begin, end) of the run, those between tensors left alone: values = sums * 2^exponents[index], rounded
  // once; zeros with kExponentUnset.
  virtual absl::Status Dequantize(Stream& stream, const TensorTable& tensors, int64_t begin, int64_t end,
                                  const int64_t* sums, const int32_t* exponents, float* values) = 0;
  // Stores or adds the tensors of one run of floats in another.
  virtual absl::Status AddFloats(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                                 float* sums) = 0;

  // sums[index] = the sum of the tensor's squares in float64: each block of kSquaresBlock elements by itself, in an
  // order that depends on the block's size alone, then the blocks' sums one after another.
  virtual absl::Status SumSquares(Stream& stream, const TensorTable& tensors, const float* values, double* sums) = 0;
  // *clip = ClipFactor(sums[0] + sums[1] + ..., added in this order to zero, denominator, max_norm).
  virtual absl::Status FindClip(Stream& stream, const double* sums, int64_t count, double denominator, double max_norm,
                                float* clip) = 0;

  // Updates every tensor in place, then moves its average to the new value, or copies that where copies_average is set.
  // `clip`: stands in for scalars.clip; null: scalars.clip itself.
  virtual absl::Status Update(Stream& stream, const UpdateTable& tensors, const UpdateFormula& formula,
                              const UpdateScalars& scalars, const float* clip) = 0;
  // Moves every element of the statistics, by MovedStatistic. `means`: one per element, tensor after tensor.
  virtual absl::Status MoveStatistics(Stream& stream, const StatisticTable& tensors, const double* means) = 0;

  // totals[i] += values[i] / divisor in float64, output after output. `totals`: as many as there are elements.
  virtual absl::Status AddOutputs(Stream& stream, const OutputTable& outputs, double* totals) = 0;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_STEP_MATH_H_
