// What the hooks of a job need beyond what each of their keys says: names that differ, one condition and something to
// do, and both fit together.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_HOOK_RULES_H_
#define LOCKSTEP_COMMON_JOB_HOOK_RULES_H_

#include <string>

#include "common/job/job.h"
#include "common/job/yaml_reader.h"

namespace lockstep::job {

// Commands named by a path become absolute: `directory` is the job file's.
void ResolveHooks(const std::string& directory, JobSpec& spec);

// Adds what is wrong with the hooks of `spec`.
void ValidateHooks(const Places& places, const JobSpec& spec, JobMistakes& mistakes);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_HOOK_RULES_H_
