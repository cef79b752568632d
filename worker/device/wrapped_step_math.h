// The StepMath of a device that wraps another one: passes every call to the inner StepMath, at once or later, in the
// inner stream that the wrapping device chooses.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_WRAPPED_STEP_MATH_H_
#define LOCKSTEP_WORKER_DEVICE_WRAPPED_STEP_MATH_H_

#include <functional>
#include <memory>
#include <utility>

#include "worker/device/step_math.h"

namespace lockstep::device {

class WrappedStepMath final : public StepMath {
 public:
  // A Queue runs `work` with the inner stream of `stream`, or defers it.
  using Work = std::function<absl::Status(Stream& inner)>;
  using Queue = std::function<absl::Status(Stream& stream, Work work)>;

  // `inner` outlives this object.
  WrappedStepMath(StepMath* inner, Queue queue) : inner_(inner), queue_(std::move(queue)) {}

  absl::StatusOr<std::unique_ptr<TensorTable>> MakeTensorTable(absl::Span<const TensorRange> ranges) override;
  absl::StatusOr<std::unique_ptr<UpdateTable>> MakeUpdateTable(const UpdateFormula& formula,
                                                               absl::Span<const UpdateTensor> tensors) override;
  absl::StatusOr<std::unique_ptr<StatisticTable>> MakeStatisticTable(
      absl::Span<const StatisticTensor> tensors) override;
  absl::StatusOr<std::unique_ptr<OutputTable>> MakeOutputTable(absl::Span<const PassOutput> outputs) override;
  absl::Status Quantize(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                        const int32_t* exponents, int64_t* sums, uint32_t* magnitudes) override;
  absl::Status FindMagnitudes(Stream& stream, const TensorTable& tensors, const float* values,
                              uint32_t* magnitudes) override;
  absl::Status Dequantize(Stream& stream, const TensorTable& tensors, int64_t begin, int64_t end, const int64_t* sums,
                          const int32_t* exponents, float* values) override;
  absl::Status AddFloats(Stream& stream, const TensorTable& tensors, Accumulate accumulate, const float* values,
                         float* sums) override;
  absl::Status SumSquares(Stream& stream, const TensorTable& tensors, const float* values, double* sums) override;
  absl::Status FindClip(Stream& stream, const double* sums, int64_t count, double denominator, double max_norm,
                        float* clip) override;
  absl::Status Update(Stream& stream, const UpdateTable& tensors, const UpdateScalars& scalars,
                      const float* clip) override;
  absl::Status MoveStatistics(Stream& stream, const StatisticTable& tensors, const double* means) override;
  absl::Status AddOutputs(Stream& stream, const OutputTable& outputs, double* totals) override;

 private:
  StepMath* const inner_;
  const Queue queue_;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_WRAPPED_STEP_MATH_H_
