#include "worker/kernels/attention/cuda_statistics.h"

#include "common/math/math.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"

namespace lockstep::device::cuda {

absl::Status JoinStatistics(StreamHandle stream, int64_t rows, const float* largest, const float* sum,
                            float* statistics) {
  return ForEach(
      stream, rows, LS_KERNEL_LAMBDA(int64_t i) {
        statistics[2 * i] = largest[i];
        statistics[2 * i + 1] = 1.0f / sum[i];
      });
}

absl::Status LogSumOfStatistics(StreamHandle stream, int64_t rows, const float* statistics, float* log_sum) {
  return ForEach(
      stream, rows, LS_KERNEL_LAMBDA(int64_t i) { log_sum[i] = statistics[2 * i] - Log(statistics[2 * i + 1]); });
}

}  // namespace lockstep::device::cuda
