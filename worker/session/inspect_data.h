// Opens the data of a job and describes it, for `check` and the chief's set-up.
//
// Threading: thread-safe (a pure function of the files); blocks.
#ifndef LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_
#define LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_

#include <memory>

#include "common/training/job_data.h"

namespace lockstep::worker {

// A DataInspector for files. Errors name file and offset; see worker/data/data_source.h.
std::unique_ptr<JobData> InspectData(const JobSpec& spec, const Graph* imported, Findings& findings);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_INSPECT_DATA_H_
