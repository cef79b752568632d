// Examines another process of this machine: asks it for a dump, and if it cannot answer, reports from outside what its
// threads are doing and where they wait in the kernel.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LIVENESS_EXAMINE_H_
#define LOCKSTEP_COMMON_LIVENESS_EXAMINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lockstep {

struct Examination {
  std::string role;
  std::string doing;  // the activities of all threads; "" for none
  std::string path;   // of the dump that the process wrote; "" if it wrote none
  std::string text;   // the dump, or the report from outside
};

// Blocks for little more than `limit`. NotFound: the process is gone, or is no chief or worker; PermissionDenied: it
// belongs to another user. A process that is stopped, or has not run for long, is not asked for a dump.
absl::StatusOr<Examination> ExamineProcess(int pid, absl::Duration limit);

// How long ago the process last showed that it runs, by a clock that both processes share. NotFound when it is gone or
// does not show it; PermissionDenied when it belongs to another user.
absl::StatusOr<absl::Duration> SilenceOf(int pid);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_EXAMINE_H_
