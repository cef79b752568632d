// Implements `lockstep check --storage`: tests whether jobs are safe in a bucket or a directory.
//
// Threading: thread-safe; blocks on the place.
#ifndef LOCKSTEP_DEPLOY_CLI_CHECK_STORAGE_H_
#define LOCKSTEP_DEPLOY_CLI_CHECK_STORAGE_H_

#include <string>

#include "common/job/findings.h"

namespace lockstep::cli {

// Adds one finding for each tested property of `place`, s3://bucket/prefix or a directory. A missing directory is made
// for the time of the check. Errors end with 78 if the place or its settings are unusable, and with 74 if it failed.
void CheckStorage(const std::string& place, Findings& findings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECK_STORAGE_H_
