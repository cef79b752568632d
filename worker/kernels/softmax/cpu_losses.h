// The reduction of rows' losses, in index order, and the factors of their gradients.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_SOFTMAX_CPU_LOSSES_H_
#define LOCKSTEP_WORKER_KERNELS_SOFTMAX_CPU_LOSSES_H_

#include <cstdint>
#include <limits>

#include "common/graph/ops/cross_entropy.h"
#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/code.h"
#include "worker/kernels/label_shapes.h"

namespace lockstep::device::cpu::LS_CODE {

inline double WeightOf(const Labels::Label& label, const float* weights) {
  if (label.ignored) return 0.0;
  return weights != nullptr && label.valid ? double{weights[label.index]} : 1.0;
}

// The loss of a row; `likelihood` is the negative log-likelihood of its label.
inline double LossOf(const Labels::Label& label, const float* weights, double likelihood) {
  if (label.valid) return WeightOf(label, weights) * likelihood;
  return label.ignored ? 0.0 : std::numeric_limits<double>::quiet_NaN();
}

// Reduces the losses of all rows by the op's `reduction` and writes the output.
inline void WriteLoss(const HostCall& call, const Labels& labels, const double* losses, int64_t rows) {
  const Reduction reduction = call.attrs<CrossEntropyAttributes>().reduction;
  float* to = call.out<float>(0);
  double sum = 0;
  double denominator = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (reduction == Reduction::kNone) to[row] = static_cast<float>(losses[row]);
    sum += losses[row];
    denominator += WeightOf(labels.at(row), call.in<float>(2));
  }
  if (reduction == Reduction::kSum) to[0] = static_cast<float>(sum);
  if (reduction == Reduction::kMean) to[0] = static_cast<float>(sum / denominator);
}

// The factors of the gradients of rows' scores: dloss, weight and, for a mean, 1 / denominator.
class RowFactors {
 public:
  RowFactors(const HostCall& call, const Labels& labels, int64_t rows)
      : dloss_(call.in<float>(0)),
        weights_(call.in<float>(3)),
        each_(call.attrs<CrossEntropyAttributes>().reduction == Reduction::kNone) {
    if (call.attrs<CrossEntropyAttributes>().reduction != Reduction::kMean) return;
    divisor_ = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const Labels::Label label = labels.at(row);
      if (label.valid) divisor_ += WeightOf(label, weights_);
    }
  }

  // NaN for an invalid label.
  float at(int64_t row, const Labels::Label& label) const {
    if (!label.ignored && !label.valid) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(dloss_[each_ ? row : 0] / divisor_ * WeightOf(label, weights_));
  }

 private:
  const float* dloss_;
  const float* weights_;
  bool each_;
  double divisor_ = 1.0;
};

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_SOFTMAX_CPU_LOSSES_H_
