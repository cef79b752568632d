// Activations, element by element, and their gradients.
//
//   Relu(X), Sigmoid(X), Tanh(X)
//   lockstep.ReluGrad(dY, Y) -> dX         dY where Y > 0, else 0 (the gradient at 0 is 0)
//   lockstep.SigmoidGrad(dY, Y) -> dX      dY * Y * (1 - Y)
//   lockstep.TanhGrad(dY, Y) -> dX         dY * (1 - Y * Y)
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ACTIVATION_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ACTIVATION_H_

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

absl::Span<const OpSchema> ActivationFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ACTIVATION_H_
