// From what the file says to what the job is: defaults, paths, and the rules that hold across keys.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_RESOLVE_H_
#define LOCKSTEP_COMMON_JOB_RESOLVE_H_

#include <string>

#include "absl/status/status.h"
#include "common/job/yaml_reader.h"
#include "protos/job.pb.h"

namespace lockstep::job {

// Fills in every default and refuses missing and inapplicable keys, then makes paths absolute: relative ones are
// relative to `directory`, itself absolute.
absl::Status FillDefaults(const Places& places, const std::string& directory, JobSpec& spec);

// The rules across keys. REQUIRES: defaults are filled in.
absl::Status Validate(const Places& places, const JobSpec& spec);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_RESOLVE_H_
