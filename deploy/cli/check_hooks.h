// What `lockstep check` says of a job's hooks: when each fires, what it does, and what keeps it from that.
//
// Threading: thread-safe (looks at files, changes nothing).
#ifndef LOCKSTEP_DEPLOY_CLI_CHECK_HOOKS_H_
#define LOCKSTEP_DEPLOY_CLI_CHECK_HOOKS_H_

#include <cstdint>
#include <string>

#include "common/job/findings.h"
#include "common/job/job.h"

namespace lockstep::cli {

// Adds a line for each hook of `spec`, whose training set has `epoch_samples` and whose last step is `end_step`; a
// command that this machine has not is a warning, because the chief may run on another.
void CheckHooks(const JobSpec& spec, int64_t epoch_samples, uint64_t end_step, Findings& findings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECK_HOOKS_H_
