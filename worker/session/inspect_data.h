// Opens the data of a job and describes it to a chief that is being started.
//
// Threading: thread-safe (a pure function of the files); blocks.
#ifndef LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_
#define LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/training/training_policy.h"

namespace lockstep::worker {

// `imported` is the graph of `model.onnx`, null for a built-in model. Errors name file and offset; see
// worker/data/data_source.h.
absl::StatusOr<DataFacts> InspectData(const JobSpec& spec, const Graph* imported);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_
