// The StepMath of a WrittenDevice: records for each call the bytes that it would move and the launches that the wrapped
// StepMath would make.
//
// Threading: owned by the thread that owns the tape.
#ifndef LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_MATH_H_
#define LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_MATH_H_

#include <functional>
#include <memory>
#include <string>

#include "worker/account/tape.h"
#include "worker/device/step_math.h"

namespace lockstep::worker {

class WrittenStepMath final : public device::StepMath {
 public:
  // `counting` is a stream of the device of `inner`. All three outlive this object.
  WrittenStepMath(device::StepMath* inner, Tape* tape, device::Stream* counting)
      : inner_(inner), tape_(tape), counting_(counting) {}

  absl::StatusOr<std::unique_ptr<device::TensorTable>> MakeTensorTable(
      absl::Span<const device::TensorRange> ranges) override;
  absl::StatusOr<std::unique_ptr<device::UpdateTable>> MakeUpdateTable(
      const device::UpdateFormula& formula, absl::Span<const device::UpdateTensor> tensors) override;
  absl::StatusOr<std::unique_ptr<device::StatisticTable>> MakeStatisticTable(
      absl::Span<const device::StatisticTensor> tensors) override;
  absl::StatusOr<std::unique_ptr<device::OutputTable>> MakeOutputTable(
      absl::Span<const device::PassOutput> outputs) override;

  absl::Status Quantize(device::Stream& stream, const device::TensorTable& tensors, device::Accumulate accumulate,
                        const float* values, const int32_t* exponents, int64_t* sums, uint32_t* magnitudes) override;
  absl::Status FindMagnitudes(device::Stream& stream, const device::TensorTable& tensors, const float* values,
                              uint32_t* magnitudes) override;
  absl::Status Dequantize(device::Stream& stream, const device::TensorTable& tensors, int64_t begin, int64_t end,
                          const int64_t* sums, const int32_t* exponents, float* values) override;
  absl::Status AddFloats(device::Stream& stream, const device::TensorTable& tensors, device::Accumulate accumulate,
                         const float* values, float* sums) override;
  absl::Status SumSquares(device::Stream& stream, const device::TensorTable& tensors, const float* values,
                          double* sums) override;
  absl::Status FindClip(device::Stream& stream, const double* sums, int64_t count, double denominator, double max_norm,
                        float* clip) override;
  absl::Status Update(device::Stream& stream, const device::UpdateTable& tensors, const device::UpdateScalars& scalars,
                      const float* clip) override;
  absl::Status MoveStatistics(device::Stream& stream, const device::StatisticTable& tensors,
                              const double* means) override;
  absl::Status AddOutputs(device::Stream& stream, const device::OutputTable& outputs, double* totals) override;

 private:
  absl::Status Queue(device::Stream& stream, const std::string& op, int64_t bytes,
                     const std::function<absl::Status(device::Stream& inner)>& call);

  device::StepMath* const inner_;
  Tape* const tape_;
  device::Stream* const counting_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_MATH_H_
