// docs/job_file.md: the page that lists every key of a job file, made from the descriptors of protos/job.proto.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_REFERENCE_H_
#define LOCKSTEP_COMMON_JOB_REFERENCE_H_

#include <string>

namespace lockstep {

// The page's reference: one table per section, one row per key with type, default and meaning.
std::string JobFileReference();

// The whole page: `page` with the text between its two markers replaced by the reference. Empty when it lacks them.
std::string WithJobFileReference(const std::string& page);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_REFERENCE_H_
