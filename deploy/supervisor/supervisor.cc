#include "deploy/supervisor/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/liveness/examine.h"
#include "common/liveness/proc.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_files.h"
#include "common/sync/stop_signals.h"

namespace lockstep::supervisor {
namespace {

constexpr int kExecFailed = 127;
constexpr absl::Duration kStepPoll = absl::Milliseconds(10);
constexpr int kLongestPollMs = 1000;
constexpr absl::Duration kExamineLimit = absl::Seconds(2);

sigset_t HandledSignals() {
  sigset_t set = StopSignals();
  sigaddset(&set, SIGCHLD);
  return set;
}

// A descriptor that appends to the file; -1 without one, or where it cannot be opened: a log that cannot be written
// stops no training.
// A link is refused: another user who may write the directory must not choose what is written to.
absl::StatusOr<int> OpenLog(const std::string& path) {
  if (path.empty()) return -1;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd >= 0 || errno != ELOOP) return fd;
  return absl::FailedPreconditionError(SymbolicLinkText(path));
}

// What the child wrote to its end of the pipe; closes this one.
std::string ReadCause(int fd) {
  std::string cause;
  char buffer[4096];
  for (ssize_t n = read(fd, buffer, sizeof buffer); n > 0; n = read(fd, buffer, sizeof buffer)) cause.append(buffer, n);
  close(fd);
  return std::string(absl::StripTrailingAsciiWhitespace(cause));
}

// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void BecomeChild(char* const* argv, int log, int cause, pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExecFailed);  // the parent died before the line above
  setpgid(0, 0);
  // A signal that came since the fork must end this process, not run a handler of the parent's program.
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, nullptr);
  }
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) dup2(null, STDIN_FILENO);
  if (cause == kCauseFd) {
    fcntl(cause, F_SETFD, 0);
  } else if (cause >= 0) {
    dup2(cause, kCauseFd);
  }
  execv(argv[0], argv);
  _exit(kExecFailed);
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options) : options_(std::move(options)), policy_(options_.policy) {}

absl::StatusOr<int> Supervisor::Run() {
  LS_RETURN_IF_ERROR(CheckLogs());
  SurviveTerminal();
  const sigset_t handled = HandledSignals();
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  const int fd = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return absl::InternalError(absl::StrCat("signalfd: ", std::strerror(errno)));
  absl::Cleanup close_fd = [&] { close(fd); };

  LS_RETURN_IF_ERROR(Feed(Started{}));
  while (!end_.has_value()) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    poll(&ready, 1, PollTimeoutMs());
    LS_RETURN_IF_ERROR(DrainSignals(fd));
    LS_RETURN_IF_ERROR(ReapChildren());
    if (end_.has_value()) break;
    if (options_.policy.kills.steps.has_value()) {
      if (std::optional<int64_t> step = options_.read_step(); step.has_value())
        LS_RETURN_IF_ERROR(Feed(StepSeen{*step}));
    }
    LS_RETURN_IF_ERROR(LookAtChildren());
    LS_RETURN_IF_ERROR(Feed(Tick{}));
  }
  return end_->exit_code;
}

int Supervisor::PollTimeoutMs() const {
  absl::Duration wait = std::min(policy_.NextDeadline(), next_look_) - clock_.Now();
  if (options_.policy.kills.steps.has_value()) wait = std::min(wait, kStepPoll);
  wait = std::max(wait, absl::ZeroDuration());
  return static_cast<int>(
      std::min<int64_t>(kLongestPollMs, absl::ToInt64Milliseconds(absl::Ceil(wait, absl::Milliseconds(1)))));
}

absl::Status Supervisor::DrainSignals(int fd) {
  signalfd_siginfo info;
  while (read(fd, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGCHLD) LS_RETURN_IF_ERROR(Feed(StopSignal{.hangup = info.ssi_signo == SIGHUP}));
  }
  return absl::OkStatus();
}

absl::Status Supervisor::ReapChildren() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    auto found = pids_.find(pid);
    if (found == pids_.end()) continue;
    const Role role = found->second.role;
    std::string cause = ReadCause(found->second.cause_fd);
    pids_.erase(found);
    ExitState how;
    if (WIFSIGNALED(status)) {
      how.signal = WTERMSIG(status);
    } else {
      how.code = WEXITSTATUS(status);
    }
    LS_RETURN_IF_ERROR(Feed(ChildExited{role, how, std::move(cause)}));
  }
  return absl::OkStatus();
}

absl::Status Supervisor::LookAtChildren() {
  if (clock_.Now() < next_look_) return absl::OkStatus();
  next_look_ = clock_.Now() + StallCheck::kEvery;
  std::vector<LifeSeen> seen;
  for (const auto& [pid, child] : pids_) {
    const absl::StatusOr<absl::Duration> silent = SilenceOf(pid);
    const absl::StatusOr<liveness::ProcessState> state = liveness::StateOfProcess(pid);
    if (!silent.ok() || !state.ok()) continue;
    seen.push_back({child.role, *silent, state->debugged, liveness::StateText(state->state)});
  }
  for (const LifeSeen& life : seen) LS_RETURN_IF_ERROR(Feed(life));
  return absl::OkStatus();
}

void Supervisor::SayWhatItDoes(const Role& role, absl::Duration limit) const {
  for (const auto& [pid, child] : pids_) {
    if (child.role != role) continue;
    const absl::StatusOr<Examination> found = ExamineProcess(pid, limit);
    if (!found.ok()) continue;
    const std::string doing = found->doing.empty() ? "nothing; its threads wait for work" : found->doing;
    options_.say(absl::StrCat("the ", RoleName(role), " is at: ", doing,
                              found->path.empty() ? "" : absl::StrCat("; its stacks are in ", found->path)));
  }
}

absl::Status Supervisor::Feed(const Event& event) { return Perform(policy_.Step(clock_.Now(), event)); }

absl::Status Supervisor::Perform(const std::vector<Action>& actions) {
  const absl::Time examined_by = clock_.Now() + kExamineLimit;  // all of them: a kill is behind
  for (const Action& action : actions) {
    if (const auto* spawn = std::get_if<Spawn>(&action)) {
      const bool ask = spawn->may_be_held && options_.why_held != nullptr;
      const std::string held = ask ? options_.why_held(spawn->role) : "";
      LS_RETURN_IF_ERROR(held.empty() ? SpawnChild(spawn->role) : Feed(Held{spawn->role, held}));
    } else if (const auto* exited = std::get_if<ReportExit>(&action)) {
      options_.report_exit(*exited);
    } else if (const auto* signal = std::get_if<Signal>(&action)) {
      for (const auto& [pid, child] : pids_) {
        if (child.role == signal->role) kill(pid, signal->number);
      }
      if (signal->number == SIGKILL)
        options_.say(absl::StrCat("killed ", RoleName(signal->role), ": ", signal->reason));
    } else if (const auto* examine = std::get_if<Examine>(&action)) {
      SayWhatItDoes(examine->role, std::max(examined_by - clock_.Now(), absl::ZeroDuration()));
    } else if (const auto* say = std::get_if<Say>(&action)) {
      options_.say(say->line);
    } else {
      end_ = std::get<End>(action);
    }
  }
  return absl::OkStatus();
}

absl::Status Supervisor::CheckLogs() const {
  for (int i = -1; i < options_.policy.workers; ++i) {
    LS_ASSIGN_OR_RETURN(const int log, OpenLog(options_.log_path({.chief = i < 0, .index = std::max(i, 0)})));
    if (log >= 0) close(log);
  }
  return absl::OkStatus();
}

absl::Status Supervisor::SpawnChild(const Role& role) {
  std::vector<std::string> words = options_.command(role);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const absl::StatusOr<int> opened = OpenLog(options_.log_path(role));
  if (!opened.ok()) return Feed(SpawnFailed{role, std::string(opened.status().message())});
  const int log = *opened;
  const absl::Cleanup close_log = [log] {
    if (log >= 0) close(log);
  };
  const pid_t parent = getpid();
  sigset_t none;
  sigemptyset(&none);
  int cause[2] = {-1, -1};
  if (pipe2(cause, O_CLOEXEC | O_NONBLOCK) != 0) cause[0] = cause[1] = -1;  // then the child says it itself
  const pid_t pid = fork();
  if (pid < 0) {
    const std::string reason = std::strerror(errno);
    for (const int fd : cause) close(fd);
    if (spawned_.count(role) != 0) return Feed(SpawnFailed{role, reason});
    return absl::InternalError(absl::StrCat("cannot start the ", RoleName(role), ": ", reason));
  }
  if (pid == 0) BecomeChild(argv.data(), log, cause[1], parent, none);
  close(cause[1]);
  spawned_.insert(role);
  pids_[pid] = {role, cause[0]};
  return absl::OkStatus();
}

}  // namespace lockstep::supervisor
