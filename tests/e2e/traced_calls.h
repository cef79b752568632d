// System calls that change files: their numbers, a filter that stops a process at them, and the files that a stopped
// call concerns.
//
// Threading: thread-safe (stateless).
#ifndef LOCKSTEP_TESTS_E2E_TRACED_CALLS_H_
#define LOCKSTEP_TESTS_E2E_TRACED_CALLS_H_

#include <sys/types.h>
#include <sys/user.h>

#include <optional>
#include <string>

namespace lockstep::e2e {

struct StoppedCall {
  std::string name;
  std::string path;     // absolute
  std::string second;   // the other path of a call that takes two
  int descriptor = -1;  // the descriptor of a call on an open file
  bool syncs = false;   // fsync, fdatasync
};

// Makes each of those calls stop the calling process, also after exec, once a tracer with PTRACE_O_TRACESECCOMP is
// attached. Does not allocate, so it may be called between fork and exec. Returns false, with errno, if it fails.
bool InstallCallFilter();

// The call at which `thread` stopped; nullopt: it changes no file.
std::optional<StoppedCall> CallOf(pid_t thread, const user_regs_struct& registers);

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_TRACED_CALLS_H_
