// Converts the softmax statistics of Attention's rows between the op's form, pairs {largest score, 1 / sum}, and
// cuDNN's: the largest scores and the sums of e^(score - largest) separately, or the logarithm of the sum of e^score.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_ATTENTION_CUDA_STATISTICS_H_
#define LOCKSTEP_WORKER_KERNELS_ATTENTION_CUDA_STATISTICS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// Queues statistics[i] = {largest[i], 1 / sum[i]} for every i in [0, rows).
absl::Status JoinStatistics(StreamHandle stream, int64_t rows, const float* largest, const float* sum,
                            float* statistics);

// Queues log_sum[i] = statistics[i][0] - log statistics[i][1].
absl::Status LogSumOfStatistics(StreamHandle stream, int64_t rows, const float* statistics, float* log_sum);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_ATTENTION_CUDA_STATISTICS_H_
