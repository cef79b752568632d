// A point in time as people give it on a command line.
//
// Threading: immutable (a pure function).
#ifndef LOCKSTEP_DEPLOY_CLI_TIME_LIMIT_H_
#define LOCKSTEP_DEPLOY_CLI_TIME_LIMIT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::cli {

// How long it is from `now` to what `text` says: a time span ("90s", "10m"), a time of day of `zone` ("18:30",
// "18:30:05": the next one), or a date with a time ("2026-11-23T18:30:00Z", "2026-11-23 18:30"). InvalidArgument for
// anything else and for what has passed.
absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text, absl::Time now, absl::TimeZone zone);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TIME_LIMIT_H_
