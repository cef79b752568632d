// The wall clock as text for people. No deadline or duration uses it.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_CLOCK_WALL_TIME_H_
#define LOCKSTEP_COMMON_CLOCK_WALL_TIME_H_

#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace lockstep {

// "2026-11-23T18:00:00.123Z".
inline std::string WallTimeText() { return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLOCK_WALL_TIME_H_
