#include "chief/hooks/group_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::chief {
namespace {

constexpr pid_t kNobody = 0;

// Tells the guard which group it kills when nobody has the pipe open any more; kNobody: it may leave.
void Say(int pipe, pid_t group) {
  while (write(pipe, &group, sizeof group) < 0 && errno == EINTR) continue;
}

// Behind fork: only what is safe there. Keeps nothing of the other process open, because others wait for the ends of
// its pipes.
[[noreturn]] void Watch(int said) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_NAME, "hook guard");
  dup2(said, STDIN_FILENO);
  close_range(STDOUT_FILENO, ~0u, 0);
  pid_t group = kNobody;
  ssize_t bytes = 0;
  do {
    pid_t next = kNobody;
    bytes = read(STDIN_FILENO, &next, sizeof next);
    if (bytes > 0 && next == kNobody) _exit(0);
    if (bytes > 0) group = next;
  } while (bytes > 0 || (bytes < 0 && errno == EINTR));
  if (group != kNobody) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

GroupGuard::GroupGuard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const Descriptor reads(ends[0]);
  says_ = Descriptor(ends[1]);
  process_ = fork();
  if (process_ == 0) Watch(reads.get());
}

GroupGuard::~GroupGuard() {
  if (!is_watching()) return;
  Say(says_.get(), kNobody);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

void GroupGuard::LeadGroup() const {
  setpgid(0, 0);
  Say(says_.get(), getpid());
}

}  // namespace lockstep::chief
