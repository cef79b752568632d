#include "worker/device/cuda/step_math.h"

namespace lockstep::device::cuda {
namespace {

absl::Status NoKernels() { return absl::UnimplementedError("the CUDA device has no kernels for the step yet"); }

class CudaStepMath final : public StepMath {
 public:
  absl::StatusOr<std::unique_ptr<TensorTable>> MakeTensorTable(absl::Span<const TensorRange>) override {
    return NoKernels();
  }
  absl::StatusOr<std::unique_ptr<UpdateTable>> MakeUpdateTable(absl::Span<const UpdateTensor>) override {
    return NoKernels();
  }
  absl::StatusOr<std::unique_ptr<StatisticTable>> MakeStatisticTable(absl::Span<const StatisticTensor>) override {
    return NoKernels();
  }
  absl::StatusOr<std::unique_ptr<OutputTable>> MakeOutputTable(absl::Span<const PassOutput>) override {
    return NoKernels();
  }
  absl::Status Quantize(Stream&, const TensorTable&, Accumulate, const float*, const int32_t*, int64_t*,
                        uint32_t*) override {
    return NoKernels();
  }
  absl::Status FindMagnitudes(Stream&, const TensorTable&, const float*, uint32_t*) override { return NoKernels(); }
  absl::Status Dequantize(Stream&, const TensorTable&, int64_t, int64_t, const int64_t*, const int32_t*,
                          float*) override {
    return NoKernels();
  }
  absl::Status AddFloats(Stream&, const TensorTable&, Accumulate, const float*, float*) override { return NoKernels(); }
  absl::Status SumSquares(Stream&, const TensorTable&, const float*, double*) override { return NoKernels(); }
  absl::Status FindClip(Stream&, const double*, int64_t, double, double, float*) override { return NoKernels(); }
  absl::Status Update(Stream&, const UpdateTable&, const UpdateFormula&, const UpdateScalars&, const float*) override {
    return NoKernels();
  }
  absl::Status MoveStatistics(Stream&, const StatisticTable&, const double*) override { return NoKernels(); }
  absl::Status AddOutputs(Stream&, const OutputTable&, double*) override { return NoKernels(); }
};

}  // namespace

std::unique_ptr<StepMath> NewCudaStepMath() { return std::make_unique<CudaStepMath>(); }

}  // namespace lockstep::device::cuda
