#include "deploy/cli/ssh_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chief/term/token.h"
#include "common/job_place/job_place.h"
#include "common/log/log.h"
#include "common/net/chief_key.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/descriptor.h"
#include "common/sync/stop_signals.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/worker_hosts.h"

namespace lockstep::cli {
namespace {

constexpr int kSshFailed = 255;
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 50'000'000};

struct SshWorkerOptions {
  SshTarget target;
  std::vector<std::string> words;
};

absl::StatusOr<std::string> JoinCredential(const std::string& directory) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(directory));
  LS_ASSIGN_OR_RETURN(const std::string token, chief::ReadToken(place->storage()));
  return RoleCredential(token, Role::kJoin);
}

// The chief that starts beside this process makes the token. Cancelled when a signal comes meanwhile.
absl::StatusOr<std::string> AwaitCredential(const std::string& directory, const sigset_t& signals) {
  for (;;) {
    absl::StatusOr<std::string> credential = JoinCredential(directory);
    if (!absl::IsNotFound(credential.status())) return credential;
    if (sigtimedwait(&signals, nullptr, &kPause) > 0) return absl::CancelledError("asked to leave before it joined");
  }
}

// Starts the command of `options` with `input` as its standard input. Returns its process.
absl::StatusOr<pid_t> StartSsh(const SshWorkerOptions& options, int input) {
  std::vector<std::string> words = absl::StrSplit(options.target.ssh, ' ', absl::SkipEmpty());
  words.push_back(options.target.host);
  words.push_back(RemoteCommand(options.words));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "cannot start ssh");
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(input, STDIN_FILENO);
  execvp(argv[0], argv.data());
  _exit(kSshFailed);
}

// Waits for `child`; a stop signal closes `input` once. Returns the exit code of the worker, or ssh's.
int AwaitEnd(pid_t child, const sigset_t& signals, Descriptor& input) {
  for (;;) {
    int signal = 0;
    sigwait(&signals, &signal);
    if (signal != SIGCHLD) {
      input.Close();
      continue;
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) != child) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : kSshFailed;
  }
}

// The worker's name among its words; "" where there is none.
std::string NameAmong(const std::vector<std::string>& words) {
  const auto name = std::find(words.begin(), words.end(), "--name");
  return words.end() - name > 1 ? *(name + 1) : "";
}

int SshWorker(const SshWorkerOptions& options) {
  InitLog({.part = "ssh", .worker = NameAmong(options.words)});
  WrapForeignOutput();
  HandOverLastLine(options.target.cause_fd, /*also_logged=*/true);
  sigset_t signals = StopSignals();
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  const auto fail = [](const absl::Status& status, int code) {
    WriteLastLine(status, code);
    return code;
  };

  const absl::StatusOr<std::string> credential = AwaitCredential(options.target.directory, signals);
  if (absl::IsCancelled(credential.status())) return kExitPreempted;
  if (!credential.ok()) return fail(credential.status(), kExitBadToken);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(absl::ErrnoToStatus(errno, "cannot make a pipe"), kExitBug);
  Descriptor theirs(ends[0]), ours(ends[1]);
  const absl::StatusOr<pid_t> child = StartSsh(options, theirs.get());
  if (!child.ok()) return fail(child.status(), kExitBug);
  theirs.Close();
  const std::string line = absl::StrCat(*credential, "\n");
  // It fits into the pipe. What ssh does not read, it says itself why.
  if (write(ours.get(), line.data(), line.size()) < 0) LS_LOG(warn, "ssh to ", options.target.host, " took no input");

  const int code = AwaitEnd(*child, signals, ours);
  if (code != kSshFailed) return code;
  return fail(absl::UnavailableError(absl::StrCat("the connection to ", options.target.host, " failed or broke; `",
                                                  options.target.ssh, " ", options.target.host,
                                                  " true` has to work without a question")),
              kExitChiefUnreachable);
}

}  // namespace

void AddSshWorker(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("ssh-worker", "A worker of `lockstep hosts`")->group("");
  auto options = std::make_shared<SshWorkerOptions>();
  command->add_option("--host", options->target.host)->required();
  command->add_option("--ssh", options->target.ssh)->required();
  AddPlace(*command, "--dir", options->target.directory, "")->required();
  command->add_option("--cause-fd", options->target.cause_fd);
  command->add_option("words", options->words)->required();
  command->callback([options, &exit_code] { exit_code = SshWorker(*options); });
}

}  // namespace lockstep::cli
