// Activations, element by element, and their gradients. At a kink the gradient is PyTorch's.
//
//   Relu(X), Sigmoid(X), Tanh(X)
//   LeakyRelu(X)                           X above 0, else alpha * X
//   ThresholdedRelu(X)                     X above alpha, else 0
//   Shrink(X)                              X + bias below -lambd, X - bias above lambd, else 0
//   PRelu(X, slope)                        X above 0, else slope * X; slope broadcasts to X
//   Elu(X), Selu(X)                        X above 0, else alpha * (e^X - 1); Selu multiplies both by gamma
//   Celu(X)                                X above 0, else alpha * (e^(X / alpha) - 1), alpha > 0
//   HardSigmoid(X), HardSwish(X)           alpha * X + beta, limited to [0, 1]; X * HardSigmoid(X) with 1/6 and 1/2
//   Softplus(X), Softsign(X), Mish(X)      log(1 + e^X), X / (1 + |X|), X * tanh(Softplus(X))
//   Gelu(X)                                X * P(N <= X) for normally distributed N, or its approximation by tanh
//   Clip(X)                                X limited to [min, max]; max where min > max. Integers too, whose bounds are
//                                          exact as far as F64 represents them. Gradient: dY where min <= X <= max
//   lockstep.ReluGrad(dY, Y) -> dX         dY where Y > 0, else 0 (the gradient at 0 is 0)
//   lockstep.SigmoidGrad(dY, Y) -> dX      dY * Y * (1 - Y)
//   lockstep.TanhGrad(dY, Y) -> dX         dY * (1 - Y * Y)
//   lockstep.PReluGrad(dY, X, slope) -> dX, dSlope     dSlope like X, before the sum over broadcast dimensions
//   lockstep.<Op>Grad(dY, X) -> dX         for LeakyRelu, ThresholdedRelu, Shrink, Elu, Selu, Celu, HardSigmoid,
//                                          HardSwish, Softsign, Mish, Gelu and Clip, with the attributes of the op
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ACTIVATION_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ACTIVATION_H_

#include <limits>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

// Attributes of LeakyRelu, ThresholdedRelu, Shrink, Elu, Selu, Celu and HardSigmoid. An op with one attribute leaves
// `beta` at 0. Selu's gamma is `beta`; Shrink's lambd and bias are `alpha` and `beta`.
struct ActivationAttributes {
  double alpha = 0.0;
  double beta = 0.0;
  friend bool operator==(const ActivationAttributes&, const ActivationAttributes&) = default;
};

struct GeluAttributes {
  bool tanh = false;  // ONNX: approximate = "tanh" rather than "none"
  friend bool operator==(const GeluAttributes&, const GeluAttributes&) = default;
};

struct ClipAttributes {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  friend bool operator==(const ClipAttributes&, const ClipAttributes&) = default;
};

absl::Span<const OpSchema> ActivationFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ACTIVATION_H_
