#include "worker/device/wrapped_step_math.h"

namespace lockstep::device {

absl::StatusOr<std::unique_ptr<TensorTable>> WrappedStepMath::MakeTensorTable(absl::Span<const TensorRange> ranges) {
  return inner_->MakeTensorTable(ranges);
}

absl::StatusOr<std::unique_ptr<UpdateTable>> WrappedStepMath::MakeUpdateTable(const UpdateFormula& formula,
                                                                              absl::Span<const UpdateTensor> tensors) {
  return inner_->MakeUpdateTable(formula, tensors);
}

absl::StatusOr<std::unique_ptr<StatisticTable>> WrappedStepMath::MakeStatisticTable(
    absl::Span<const StatisticTensor> tensors) {
  return inner_->MakeStatisticTable(tensors);
}

absl::StatusOr<std::unique_ptr<OutputTable>> WrappedStepMath::MakeOutputTable(absl::Span<const PassOutput> outputs) {
  return inner_->MakeOutputTable(outputs);
}

absl::Status WrappedStepMath::Quantize(Stream& stream, const TensorTable& tensors, Accumulate accumulate,
                                       const float* values, const int32_t* exponents, int64_t* sums,
                                       uint32_t* magnitudes) {
  return queue_(stream, [=, this, &tensors](Stream& inner) {
    return inner_->Quantize(inner, tensors, accumulate, values, exponents, sums, magnitudes);
  });
}

absl::Status WrappedStepMath::FindMagnitudes(Stream& stream, const TensorTable& tensors, const float* values,
                                             uint32_t* magnitudes) {
  return queue_(stream, [=, this, &tensors](Stream& inner) {
    return inner_->FindMagnitudes(inner, tensors, values, magnitudes);
  });
}

absl::Status WrappedStepMath::Dequantize(Stream& stream, const TensorTable& tensors, int64_t begin, int64_t end,
                                         const int64_t* sums, const int32_t* exponents, float* values) {
  return queue_(stream, [=, this, &tensors](Stream& inner) {
    return inner_->Dequantize(inner, tensors, begin, end, sums, exponents, values);
  });
}

absl::Status WrappedStepMath::AddFloats(Stream& stream, const TensorTable& tensors, Accumulate accumulate,
                                        const float* values, float* sums) {
  return queue_(stream, [=, this, &tensors](Stream& inner) {
    return inner_->AddFloats(inner, tensors, accumulate, values, sums);
  });
}

absl::Status WrappedStepMath::SumSquares(Stream& stream, const TensorTable& tensors, const float* values,
                                         double* sums) {
  return queue_(stream,
                [=, this, &tensors](Stream& inner) { return inner_->SumSquares(inner, tensors, values, sums); });
}

absl::Status WrappedStepMath::FindClip(Stream& stream, const double* sums, int64_t count, double denominator,
                                       double max_norm, float* clip) {
  return queue_(stream,
                [=, this](Stream& inner) { return inner_->FindClip(inner, sums, count, denominator, max_norm, clip); });
}

absl::Status WrappedStepMath::Update(Stream& stream, const UpdateTable& tensors, const UpdateScalars& scalars,
                                     const float* clip) {
  return queue_(stream, [=, this, &tensors](Stream& inner) { return inner_->Update(inner, tensors, scalars, clip); });
}

absl::Status WrappedStepMath::MoveStatistics(Stream& stream, const StatisticTable& tensors, const double* means) {
  return queue_(stream, [=, this, &tensors](Stream& inner) { return inner_->MoveStatistics(inner, tensors, means); });
}

absl::Status WrappedStepMath::AddOutputs(Stream& stream, const OutputTable& outputs, double* totals) {
  return queue_(stream, [=, this, &outputs](Stream& inner) { return inner_->AddOutputs(inner, outputs, totals); });
}

}  // namespace lockstep::device
