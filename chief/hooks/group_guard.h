// Ends a process group with this process: a child process of its own waits for the end of this one, however that
// comes, and then kills the group. Processes that left the group live on.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_
#define LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_

#include <sys/types.h>

#include "common/net/descriptor.h"

namespace lockstep::chief {

class GroupGuard {
 public:
  // Where the system gives no pipe or process, nobody guards.
  explicit GroupGuard(pid_t group);
  // From here on the group is nobody's. REQUIRES: SIGPIPE is ignored, or blocked in this thread.
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

 private:
  Descriptor alive_;  // open as long as this process lives
  pid_t process_ = -1;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_
