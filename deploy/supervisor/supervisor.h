// Carries out the policy of `lockstep run`: runs a chief and N workers as child processes.
//
// Children end with the supervisor, even if it is killed by SIGKILL (PR_SET_PDEATHSIG). They have process groups of
// their own, so that a Ctrl-C of the terminal reaches the supervisor alone.
//
// Threading: thread-compatible; the thread that calls Run must outlive the children.
#ifndef LOCKSTEP_DEPLOY_SUPERVISOR_SUPERVISOR_H_
#define LOCKSTEP_DEPLOY_SUPERVISOR_SUPERVISOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock/clock.h"
#include "deploy/supervisor/policy.h"

namespace lockstep::supervisor {

// The descriptor at which each child has the write end of a pipe, for the reason of its failure (HandOverLastLine of
// common/log).
inline constexpr int kCauseFd = 3;

struct SupervisorOptions {
  PolicyOptions policy;
  // The command line of one child.
  std::function<std::vector<std::string>(const Role&)> command;
  // Reports to the chief how a worker's process ended. Must not block for long; errors are ignored. It returns before
  // the worker's next process starts.
  std::function<void(const ReportExit&)> report_exit;
  // The file to which a child's output is appended; empty: this process's own output. Before anything starts, none may
  // be a symbolic link; while one is a link later, its process is not started.
  std::function<std::string(const Role&)> log_path;
  // The highest agreed step; nullopt if the chief does not answer. Called every 10 ms if kills are scheduled by steps.
  std::function<std::optional<int64_t>()> read_step;
  // Why this worker is kept away ("is drained: …", to follow its name); "" if it is not, or if that is not known. Must
  // not block for long.
  std::function<std::string(const Role&)> why_held;
  // Receives lines for people, one at a time.
  std::function<void(const std::string&)> say;
};

class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options);

  // Runs until every child has ended, and returns the exit code of the run. Blocks. Takes over SIGINT, SIGTERM, SIGHUP
  // and SIGCHLD of the process; they stay blocked afterwards, so that a late one does not change the exit code. SIGPIPE
  // and SIGTTOU are ignored from then on. Internal: a process cannot be started even once. FailedPrecondition, before
  // any is started: a log is a symbolic link.
  absl::StatusOr<int> Run();

  // The number of workers killed on purpose so far.
  int64_t kills() const { return policy_.kills(); }
  // Why the run failed, in the words of the process whose code it ended with; "" if that gave none.
  std::string Cause() const { return end_.has_value() ? end_->cause : ""; }

 private:
  absl::Status CheckLogs() const;
  absl::Status Perform(const std::vector<Action>& actions);
  absl::Status SpawnChild(const Role& role);
  absl::Status Feed(const Event& event);
  absl::Status ReapChildren();
  // Reports to the policy how long ago each child ran, every StallCheck::kEvery.
  absl::Status LookAtChildren();
  void SayWhatItDoes(const Role& role, absl::Duration limit) const;
  absl::Status DrainSignals(int fd);
  int PollTimeoutMs() const;

  SupervisorOptions options_;
  SteadyClock clock_;
  Policy policy_;
  std::set<Role> spawned_;  // at least once
  absl::Time next_look_ = absl::InfinitePast();
  struct Child {
    Role role;
    int cause_fd = -1;  // read end of its pipe
  };
  std::map<int, Child> pids_;
  std::optional<End> end_;
};

}  // namespace lockstep::supervisor

#endif  // LOCKSTEP_DEPLOY_SUPERVISOR_SUPERVISOR_H_
