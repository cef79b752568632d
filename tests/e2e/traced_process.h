// A process that is watched at every system call that changes files below one directory, and hit at one of them: killed
// before or after it, given an error in its place, or held with all its threads until it is let go.
//
//   started --n-th call--> hit (kill, fail) --------------> ended
//                     \--> held --Release, or dropped--/
//
// The calls are found by a seccomp filter that stops the process at them alone; ptrace does the rest. All of ptrace is
// done by one thread, as the kernel wants it. Calls are numbered from 1 in the order in which they begin, over all
// threads. When the test dies, so does the process.
//
// Threading: owned by the test.
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
  std::string path;  // below the directory; of two: "from -> to"
  std::string Text() const;
  // The same for calls that differ in a count, a random name or a step only.
  std::string Kind() const;
};

enum class HitKind {
  kNone,
  kKillBefore,
  kKillAfter,
  kFail,
  kHold,  // all threads
  kHang,  // from that call on, each thread that would make any, as with a mount that hangs
};

// What happens, and at which call.
struct Hit {
  HitKind kind = HitKind::kNone;
  int call = 0;   // of those for which `counts` is true, from 1
  int error = 0;  // of kFail: an errno
  std::function<bool(const TracedCall&)> counts = [](const TracedCall&) { return true; };
};

class TracedProcess {
 public:
  // False, having said "SKIPPED: why" for `what`, where this machine allows no tracing.
  static bool Allowed(const std::string& what);

  // Starts `words`; its output is appended to `log`. `directory` is absolute.
  TracedProcess(std::vector<std::string> words, std::string log, const std::string& directory, Hit hit);
  // Kills it when it runs or is held.
  ~TracedProcess();
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  // Waits until it is held (true) or ended (false). nullopt after `limit`.
  std::optional<bool> WaitUntilHeld(absl::Duration limit);
  // Lets a held process go on.
  void Release();
  // Waits for its end; nullopt after `limit`.
  std::optional<Ended> Wait(absl::Duration limit);
  bool Running() { return !Wait(absl::ZeroDuration()).has_value(); }
  void Signal(int number) const;

  // The calls that counted so far.
  std::vector<TracedCall> calls() const;
  // The call that was hit; nullopt while none was.
  std::optional<TracedCall> hit() const;
  // Where the file lies now whose fsync was made to fail: an absolute path, with " (deleted)" behind it when it is
  // gone. Empty: it was another call.
  std::string FileOfFailedSync() const;

 private:
  class Tracer;

  const std::vector<std::string> words_;
  const std::string log_;
  const std::string directory_;
  const Hit hit_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  pid_t pid_ = -1;
  bool held_ = false;
  bool released_ = false;
  std::optional<Ended> ended_;
  std::string failure_;  // of the tracing itself
  std::vector<TracedCall> calls_;
  std::optional<TracedCall> was_hit_;
  int synced_ = -1;  // the file whose fsync failed, so that it can be found again

  std::thread thread_;
};

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_TRACED_PROCESS_H_
