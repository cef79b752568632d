// Reads what the kernel reports in /proc about a process and its threads: the only source for a thread that cannot
// report itself, because it is stopped or in an uninterruptible sleep.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LIVENESS_PROC_H_
#define LOCKSTEP_COMMON_LIVENESS_PROC_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/liveness/page.h"

namespace lockstep::liveness {

struct ThreadState {
  int tid = 0;
  std::string name;         // as the system knows it, at most 15 letters
  char state = '?';         // R running, S sleeping, D uninterruptible, T stopped, t traced, Z zombie
  std::string waits_in;     // the kernel function; "" when not reported
  std::string system_call;  // "fsync", "futex", a number for rare ones; "" for none or not reported
};

// Parses the content of /proc/PID/task/TID/stat into name and state, which stay unchanged when it is malformed.
void ParseStat(absl::string_view text, ThreadState& state);
// The name of the system call in the content of /proc/PID/task/TID/syscall.
std::string ParseSystemCall(absl::string_view text);
// The value of a field of /proc/PID/status, such as "TracerPid"; "" when it is missing.
std::string ParseStatusField(absl::string_view text, absl::string_view field);

// The threads of a process, sorted by id; empty for a process that is gone.
std::vector<int> ThreadsOf(int pid);
// The state of a thread; members that are not known stay empty.
ThreadState StateOfThread(int pid, int tid);
// Whether the thread blocks the signal.
bool BlocksSignal(int pid, int tid, int signal);
// The text for the letter of a ThreadState: "runs", "is stopped", ...
std::string StateText(char state);

struct ProcessState {
  char state = '?';       // of its first thread
  bool debugged = false;  // a debugger holds it, and may have stopped it
};
// NotFound for a process that is gone.
absl::StatusOr<ProcessState> StateOfProcess(int pid);

// Maps the page of another process. Its content changes as the other process writes it.
class PageView {
 public:
  // NotFound when the process is gone or has no page; PermissionDenied when it belongs to another user.
  static absl::StatusOr<std::unique_ptr<PageView>> Of(int pid);
  ~PageView();
  const Page& page() const { return *page_; }

 private:
  explicit PageView(const Page* page) : page_(page) {}
  const Page* const page_;
};

// Processes of this machine that have a page with a role and that this user may examine, sorted by id.
std::vector<int> FindProcesses();

}  // namespace lockstep::liveness

#endif  // LOCKSTEP_COMMON_LIVENESS_PROC_H_
