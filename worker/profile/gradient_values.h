// Finds the nodes of a training graph's backward pass: those that read or write values that depend on the gradient of
// the loss. Nodes must be visited in the order in which a plan makes their kernels.
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
  // Whether an input or output of the node is a gradient or depends on one. If so, its outputs count as such values for
  // later calls.
  bool Reaches(const Node& node);

 private:
  std::set<std::string> values_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_GRADIENT_VALUES_H_
