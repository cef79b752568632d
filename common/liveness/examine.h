// Looks at another process of this machine: asks it for a dump, and where it cannot answer says from outside what its
// threads do and where the kernel holds them.
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
  std::string doing;  // of all threads that do something; "" for none
  std::string path;   // of the dump that the process wrote; "" when it did not
  std::string text;   // the dump, or what can be said from outside
};

// Blocks for at most `limit` and a little. NotFound: it is gone, or no chief or worker; PermissionDenied: another
// user's. A process that is stopped, or has not run for long, is not asked.
absl::StatusOr<Examination> ExamineProcess(int pid, absl::Duration limit);

// How long ago the process last showed that it runs, by a clock that both see; nothing when it does not show it.
absl::StatusOr<absl::Duration> SilenceOf(int pid);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_EXAMINE_H_
