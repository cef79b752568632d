// Opens the data of a job and describes it to a chief that is being started.
//
// Threading: thread-safe (a pure function of the files); blocks.
#ifndef LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_
#define LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/training/training_policy.h"

namespace lockstep::worker {

// Errors name file and offset; see worker/data/data_source.h.
absl::StatusOr<DataFacts> InspectData(const JobSpec& spec, absl::Span<const GraphInput> model_inputs);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_
