// System calls that change files: their numbers, the filter that stops a process at them, and which files a stopped
// call is about.
//
// Threading: immutable.
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
  std::string second;   // of a call that takes two: the other one
  int descriptor = -1;  // of a call on an open file
  bool syncs = false;   // fsync, fdatasync
};

// For the calling process and what it becomes: each of those calls stops it, once a tracer with PTRACE_O_TRACESECCOMP
// is there. Makes no allocation, so that it may be called between fork and exec. False: errno says why.
bool InstallCallFilter();

// The call at which thread `thread` stopped; nullopt: it changes no file.
std::optional<StoppedCall> CallOf(pid_t thread, const user_regs_struct& registers);

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_TRACED_CALLS_H_
