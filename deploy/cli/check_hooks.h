// Reports a job's hooks for `lockstep check`: when each fires, what it does, and what prevents that.
//
// Threading: thread-safe (looks at files, changes nothing).
#ifndef LOCKSTEP_DEPLOY_CLI_CHECK_HOOKS_H_
#define LOCKSTEP_DEPLOY_CLI_CHECK_HOOKS_H_

#include <cstdint>
#include <string>

#include "common/job/findings.h"
#include "common/job/job.h"

namespace lockstep::cli {

// Adds a line for each hook of `spec`. `epoch_samples`: samples of its training set; `end_step`: its last step. A
// command that is missing on this machine is a warning, because the chief may run elsewhere.
void CheckHooks(const JobSpec& spec, int64_t epoch_samples, uint64_t end_step, Findings& findings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECK_HOOKS_H_
