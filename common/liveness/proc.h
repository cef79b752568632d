// What the system says of a process and of each of its threads: the only words about a thread that cannot speak for
// itself, because it is stopped or sleeps in the kernel where no signal wakes it.
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
  std::string name;      // as the system knows it, at most 15 letters
  char state = '?';      // R runs, S sleeps, D sleeps and no signal wakes it, T stopped, t held by a debugger, Z gone
  std::string waits_in;  // the function of the kernel; "" when that is not said
  std::string system_call;  // "fsync", "futex", a number for rare ones; "" when it is in none or that is not said
};

// Reads the content of /proc/PID/task/TID/stat into name and state; unchanged where it is none.
void ParseStat(absl::string_view text, ThreadState& state);
// The name of the system call in the content of /proc/PID/task/TID/syscall.
std::string ParseSystemCall(absl::string_view text);
// The value of a field of /proc/PID/status, as "TracerPid"; "" where there is none.
std::string ParseStatusField(absl::string_view text, absl::string_view field);

// Its threads, in the order of their ids. Empty for a process that is gone.
std::vector<int> ThreadsOf(int pid);
// What is not known stays empty.
ThreadState StateOfThread(int pid, int tid);
// Whether a thread keeps the signal from reaching it.
bool BlocksSignal(int pid, int tid, int signal);
// "runs", "is stopped", ...: for the letter of a ThreadState.
std::string StateText(char state);

struct ProcessState {
  char state = '?';       // of its first thread
  bool debugged = false;  // a debugger holds it, and may have stopped it
};
// NotFound for a process that is gone.
absl::StatusOr<ProcessState> StateOfProcess(int pid);

// The page of another process, as long as this lives. Its content is what the other one writes at that moment.
class PageView {
 public:
  // NotFound when the process is gone or shows none; PermissionDenied when it is another user's.
  static absl::StatusOr<std::unique_ptr<PageView>> Of(int pid);
  ~PageView();
  const Page& page() const { return *page_; }

 private:
  explicit PageView(const Page* page) : page_(page) {}
  const Page* const page_;
};

// Processes of this machine that show a page with a role, and that this user may look at, in the order of their ids.
std::vector<int> FindProcesses();

}  // namespace lockstep::liveness

#endif  // LOCKSTEP_COMMON_LIVENESS_PROC_H_
