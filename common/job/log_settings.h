// Applies the log settings of a job, `observe.log`, to the process that reads the job.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_JOB_LOG_SETTINGS_H_
#define LOCKSTEP_COMMON_JOB_LOG_SETTINGS_H_

#include "common/job/job.h"

namespace lockstep {

// Sets the level and format of this process's log to those of the job; other log options stay.
void ApplyLogSettings(const JobSpec& spec);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_LOG_SETTINGS_H_
