#include "chief/hooks/group_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::chief {
namespace {

// Behind fork: only what is safe there. Keeps nothing of the other process open, because others wait for the ends of
// its pipes.
[[noreturn]] void Watch(int alive, pid_t group) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_NAME, "hook guard");
  dup2(alive, STDIN_FILENO);
  close_range(STDOUT_FILENO, ~0u, 0);
  char done = 0;
  ssize_t bytes = 0;
  do {
    bytes = read(STDIN_FILENO, &done, 1);
  } while (bytes < 0 && errno == EINTR);
  if (bytes == 0) kill(-group, SIGKILL);
  _exit(0);
}

}  // namespace

GroupGuard::GroupGuard(pid_t group) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const Descriptor reads(ends[0]);
  alive_ = Descriptor(ends[1]);
  process_ = fork();
  if (process_ == 0) Watch(reads.get(), group);
}

GroupGuard::~GroupGuard() {
  if (process_ < 0) return;
  const char done = 1;
  while (write(alive_.get(), &done, 1) < 0 && errno == EINTR) continue;
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace lockstep::chief
