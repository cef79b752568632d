// The statistics of Attention from and to those that cuDNN has: the largest score and the sum of a row's e^(score -
// largest), each by itself, and the logarithm of the sum of e^score.
//
// Threading: as device.h.
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
