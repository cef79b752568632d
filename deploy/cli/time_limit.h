// Parses a point in time from a command line.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_DEPLOY_CLI_TIME_LIMIT_H_
#define LOCKSTEP_DEPLOY_CLI_TIME_LIMIT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::cli {

// The time from `now` until `text`: a duration ("90s", "10m"), a time of day in `zone` ("18:30", "18:30:05": the next
// one), or a date with a time ("2026-11-23T18:30:00Z", "2026-11-23 18:30"). InvalidArgument: anything else, and times
// that have passed.
absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text, absl::Time now, absl::TimeZone zone);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TIME_LIMIT_H_
