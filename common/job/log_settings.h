// The log settings of a job, `observe.log`, for the process that reads the job.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_JOB_LOG_SETTINGS_H_
#define LOCKSTEP_COMMON_JOB_LOG_SETTINGS_H_

#include "common/job/job.h"

namespace lockstep {

// From now on this process writes what the job asks for, in its format. The role of the log stays.
void ApplyLogSettings(const JobSpec& spec);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_LOG_SETTINGS_H_
