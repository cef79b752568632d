// Runs a process, traces every system call that changes files below one directory, and hits one of them: kills the
// process before or after it, makes it fail, or holds all threads until released.
//
//   started --n-th call--> hit (kill, fail) --------------> ended
//                     \--> held --Release, or dropped--/
//
// A seccomp filter stops the process only at these calls; ptrace does the rest, on one thread, as the kernel requires.
// Calls are numbered from 1 in the order in which they begin, over all threads. If the test dies, so does the process.
//
// Threading: thread-compatible; owns the tracing thread.
#ifndef LOCKSTEP_TESTS_E2E_TRACED_PROCESS_H_
#define LOCKSTEP_TESTS_E2E_TRACED_PROCESS_H_

#include <sys/types.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {

struct TracedCall {
  std::string name;  // "renameat2"
  std::string path;  // relative to the directory; of a call with two: "from -> to"
  std::string Text() const;
  // Equal for calls that differ only in a count, a random name or a step.
  std::string Kind() const;
};

enum class HitKind {
  kNone,
  kKillBefore,
  kKillAfter,
  kFail,
  kHold,  // all threads
  kHang,  // from that call on, every thread that makes one, as if the mount hung
};

// What is done, and at which call.
struct Hit {
  HitKind kind = HitKind::kNone;
  int call = 0;   // its number among those for which `counts` is true, from 1
  int error = 0;  // for kFail: an errno
  std::function<bool(const TracedCall&)> counts = [](const TracedCall&) { return true; };
};

class TracedProcess {
 public:
  // Whether this machine allows tracing; if not, prints "SKIPPED: why" for `what`.
  static bool Allowed(const std::string& what);

  // Starts `words`; its output is appended to `log`. `directory` is absolute.
  TracedProcess(std::vector<std::string> words, std::string log, const std::string& directory, Hit hit);
  // Kills the process if it still runs or is held.
  ~TracedProcess();
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  // Waits until the process is held (true) or has ended (false); nullopt after `limit`.
  std::optional<bool> WaitUntilHeld(absl::Duration limit);
  // Lets a held process continue.
  void Release();
  // Waits for its end; nullopt after `limit`.
  std::optional<Ended> Wait(absl::Duration limit);
  bool Running() { return !Wait(absl::ZeroDuration()).has_value(); }
  void Signal(int number) const;

  // The calls that counted so far.
  std::vector<TracedCall> calls() const;
  // The call that was hit; nullopt while none was.
  std::optional<TracedCall> hit() const;
  // The present absolute path of the file whose fsync was made to fail, with " (deleted)" appended if it was removed;
  // empty if another call was hit.
  std::string FileOfFailedSync() const;

 private:
  class Tracer;

  const std::vector<std::string> words_;
  const std::string log_;
  const std::string directory_;
  const Hit hit_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  pid_t pid_ = -1;
  bool held_ = false;
  bool released_ = false;
  std::optional<Ended> ended_;
  std::string failure_;  // of the tracing itself
  std::vector<TracedCall> calls_;
  std::optional<TracedCall> was_hit_;
  int synced_ = -1;  // the file whose fsync failed, kept open

  std::thread thread_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_TRACED_PROCESS_H_
