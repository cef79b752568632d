#include "worker/device/cuda/checker/broken_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "worker/device/cuda/checker/checker.h"

namespace lockstep::device::cuda {

bool CheckerIsOn() {
  if (!checker::kChecks) std::cout << "SKIPPED: a sanitizer sees the accesses of kernels, and the checker none\n";
  return checker::kChecks;
}

std::string SaidBy(const std::function<void()>& act) {
  int ends[2];
  LS_CHECK(pipe(ends) == 0, "a test has files for a pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    for (const int caught : {SIGABRT, SIGSEGV}) std::signal(caught, SIG_DFL);
    act();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[4096];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return said;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !said.empty()) return said;
  return absl::StrCat("it ended with status ", status, " and said: ", said);
}

}  // namespace lockstep::device::cuda
