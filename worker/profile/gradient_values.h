// Which nodes of a training graph belong to its backward pass: those that the gradient of the loss reaches, seen in the
// order in which a plan makes their kernels.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_PROFILE_GRADIENT_VALUES_H_
#define LOCKSTEP_WORKER_PROFILE_GRADIENT_VALUES_H_

#include <set>
#include <string>

#include "common/graph/ops/ir.h"

namespace lockstep::worker {

class GradientValues {
 public:
  // Whether an input or an output of the node is a gradient, or depends on one. Its outputs are such values from then
  // on.
  bool Reaches(const Node& node);

 private:
  std::set<std::string> values_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_GRADIENT_VALUES_H_
