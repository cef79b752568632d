// `lockstep check --storage`: whether jobs are safe in a bucket or a directory, proven there.
//
// Threading: thread-safe; blocks on the place.
#ifndef LOCKSTEP_DEPLOY_CLI_CHECK_STORAGE_H_
#define LOCKSTEP_DEPLOY_CLI_CHECK_STORAGE_H_

#include <string>

#include "common/job/findings.h"

namespace lockstep::cli {

// Adds one finding for each property of `place`, s3://bucket/prefix or a directory, which is made for the time of the
// check when it is missing. Errors end with 78 where the place or its settings are unusable, and 74 where it failed.
void CheckStorage(const std::string& place, Findings& findings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECK_STORAGE_H_
