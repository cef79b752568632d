// Resolves a job that was read: fills in defaults, makes paths absolute, and checks the rules across keys.
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
// to `directory`, itself absolute. Keys that depend on a mistaken value are not checked.
void FillDefaults(const Places& places, const std::string& directory, JobSpec& spec, JobMistakes& mistakes);

// Checks the rules across keys, except those that involve a mistaken key. REQUIRES: defaults are filled in.
void Validate(const Places& places, const JobSpec& spec, JobMistakes& mistakes);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_RESOLVE_H_
