// From what the file says to what the job is: defaults, paths, and the rules that hold across keys.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_RESOLVE_H_
#define LOCKSTEP_COMMON_JOB_RESOLVE_H_

#include <string>

#include "common/job/mistakes.h"
#include "common/job/yaml_reader.h"
#include "protos/job.pb.h"

namespace lockstep::job {

// Fills in every default and notes missing and inapplicable keys, then makes paths absolute: relative ones are relative
// to `directory`, itself absolute. What depends on a value that was already mistaken is not judged.
void FillDefaults(const Places& places, const std::string& directory, JobSpec& spec, JobMistakes& mistakes);

// The rules across keys; those between keys that are not mistaken themselves. REQUIRES: defaults are filled in.
void Validate(const Places& places, const JobSpec& spec, JobMistakes& mistakes);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_RESOLVE_H_
