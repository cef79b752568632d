// What of a job's state goes into a TensorFlow checkpoint, and under which keys (docs/formats/tensorflow.md). A pure
// function of the metagraph.
//
// Threading: immutable.
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
  bool average = false;       // the average of the weights as the model, and no optimizer
  bool weights_only = false;  // no optimizer
};

struct TensorflowVariable {
  TensorSpec spec;     // under its key
  std::string tensor;  // of the state, which gives its bytes; empty: they are `bytes`
  std::string bytes;
};

struct TensorflowPlan {
  std::vector<TensorflowVariable> variables;
  std::string graph;  // value of kObjectGraphKey
  int weights = 0;    // of the variables: those of the model, and slots of the optimizer
  int slots = 0;
  std::vector<std::string> left_out;  // tensors of the chosen groups that mean nothing to TensorFlow

  uint64_t TotalBytes() const;
};

// The variables of a state after `step` updates: model/… for the model's, a slot per parameter and kind, the
// optimizer's counters, save_counter. InvalidArgument: the second name of a tied weight is the beginning of another's.
absl::StatusOr<TensorflowPlan> PlanTensorflow(const MetaGraph& metagraph, int64_t step, const TensorflowChoice& choice);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_PLAN_H_
