// Ends a process group together with this process. A child process waits for the end of this one, however it comes, and
// then kills the group. Processes that left the group live on.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_
#define LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_

#include <sys/types.h>

#include "common/storage/descriptor.h"

namespace lockstep::chief {

class GroupGuard {
 public:
  // Starts the guard without a group. If the system refuses a pipe or a process, is_watching() is false and errno says
  // why.
  GroupGuard();
  // Stops guarding the group. REQUIRES: SIGPIPE is ignored, or blocked in this thread.
  ~GroupGuard();
  GroupGuard(const GroupGuard&) = delete;
  GroupGuard& operator=(const GroupGuard&) = delete;

  bool is_watching() const { return process_ > 0; }

  // Makes the calling process, a child of the guard's owner, the leader of the guarded group. The child calls it
  // between fork and exec, so that the group is guarded even if the parent is killed before it could name the group.
  // Async-signal-safe. REQUIRES: is_watching().
  void LeadGroup() const;

 private:
  Descriptor says_;  // stays open while the owner lives; closed on exec
  pid_t process_ = -1;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_GROUP_GUARD_H_
