// The rules of hooks that span several keys: names are unique, and every hook has one condition and an action that fits
// it.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_HOOK_RULES_H_
#define LOCKSTEP_COMMON_JOB_HOOK_RULES_H_

#include <string>

#include "common/job/job.h"
#include "common/job/yaml_reader.h"

namespace lockstep::job {

// Makes command paths absolute; relative ones are relative to `directory`, that of the job file.
void ResolveHooks(const std::string& directory, JobSpec& spec);

// Adds the mistakes in the hooks of `spec`.
void ValidateHooks(const Places& places, const JobSpec& spec, JobMistakes& mistakes);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_HOOK_RULES_H_
