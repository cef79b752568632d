// Ends a process group with this process: a child process of its own waits for the end of this one, however that
// comes, and then kills the group. Processes that left the group live on.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_
#define LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_

#include <sys/types.h>

#include "common/storage/descriptor.h"

namespace lockstep::chief {

class GroupGuard {
 public:
  // Guards nothing yet. Where the system gives no pipe or process, is_watching() is false and errno says why.
  GroupGuard();
  // From here on the group is nobody's. REQUIRES: SIGPIPE is ignored, or blocked in this thread.
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  bool is_watching() const { return process_ > 0; }

  // Makes the calling process, a child of the guard's owner, the leader of the group that is guarded. It does that
  // itself before it becomes another program: a group that its parent named later would outlive a parent that is killed
  // between. Safe between fork and exec. REQUIRES: is_watching().
  void LeadGroup() const;

 private:
  Descriptor says_;  // open as long as the owner lives; closed on exec
  pid_t process_ = -1;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_
