// The pointwise losses of pointwise_loss.h for one element, shared by the reference and the CUDA kernels.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_LOSS_POINTWISE_H_
#define LOCKSTEP_WORKER_KERNELS_LOSS_POINTWISE_H_

#include "common/graph/ops/pointwise_loss.h"
#include "common/math/math.h"

namespace lockstep::device {

// The loss for prediction x and target t, and (PointwiseSlope) its derivative by x.
LS_HD inline double PointwiseValue(PointwiseLossKind kind, double delta, double x, double t) {
  const double d = x - t;
  const double magnitude = d < 0 ? -d : d;
  switch (kind) {
    case PointwiseLossKind::kMse:
      return d * d;
    case PointwiseLossKind::kL1:
      return magnitude;
    case PointwiseLossKind::kHuber:
      return magnitude <= delta ? 0.5 * d * d : delta * (magnitude - 0.5 * delta);
    case PointwiseLossKind::kBceWithLogits:
      return (x > 0 ? x : 0.0) - x * t + Log1p(Exp(x < 0 ? x : -x));
  }
  return d;
}

LS_HD inline double PointwiseSlope(PointwiseLossKind kind, double delta, double x, double t) {
  const double d = x - t;
  const double sign = d > 0 ? 1.0 : d < 0 ? -1.0 : d;
  switch (kind) {
    case PointwiseLossKind::kMse:
      return 2 * d;
    case PointwiseLossKind::kL1:
      return sign;
    case PointwiseLossKind::kHuber:
      return sign * d <= delta ? d : delta * sign;
    case PointwiseLossKind::kBceWithLogits:
      return Sigmoid(x) - t;
  }
  return d;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_LOSS_POINTWISE_H_
