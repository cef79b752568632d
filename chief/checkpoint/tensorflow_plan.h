// Plans a TensorFlow checkpoint: which tensors of a job's state it contains, and under which keys
// (docs/formats/tensorflow.md). A pure function of the metagraph.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_PLAN_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/tensor/tensor.h"

namespace lockstep::chief {

struct TensorflowChoice {
  bool average = false;       // the averaged weights take the place of the model's; no optimizer
  bool weights_only = false;  // no optimizer
};

struct TensorflowVariable {
  TensorSpec spec;     // under its key
  std::string tensor;  // the state tensor with its bytes; empty: they are `bytes`
  std::string bytes;
};

struct TensorflowPlan {
  std::vector<TensorflowVariable> variables;
  std::string graph;  // value of kObjectGraphKey
  int weights = 0;    // the number of model variables; `slots`: of optimizer slots
  int slots = 0;
  std::vector<std::string> left_out;  // tensors of the chosen groups that TensorFlow has no place for

  uint64_t TotalBytes() const;
};

// The variables of a state after `step` updates: model/… for those of the model, a slot per parameter and kind, the
// optimizer's counters, save_counter. InvalidArgument: the second name of a tied weight is a prefix of another name.
absl::StatusOr<TensorflowPlan> PlanTensorflow(const MetaGraph& metagraph, int64_t step, const TensorflowChoice& choice);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_PLAN_H_
