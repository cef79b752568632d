// Carries out the policy of `lockstep run`: a chief and N workers as child processes of this one.
//
// Children end with the supervisor, even when it is killed by SIGKILL (PR_SET_PDEATHSIG), and live in process groups
// of their own, so that a Ctrl-C of the terminal reaches the supervisor alone.
//
// Threading: owned by the thread that calls Run; that thread must outlive the children.
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

// Each child finds here the writing end of a pipe for the reason of its failure (HandOverLastLine of common/log).
inline constexpr int kCauseFd = 3;

struct SupervisorOptions {
  PolicyOptions policy;
  // The command line of one child.
  std::function<std::vector<std::string>(const Role&)> command;
  // Tells the chief how a worker's process ended. May fail silently; must not block for long. Returns before the
  // worker's next process starts.
  std::function<void(const ReportExit&)> report_exit;
  // Where a child's output goes, appended; empty: this process's own output. Before anything starts none may be a
  // symbolic link; one that becomes a link later keeps its process from starting for as long as it is one.
  std::function<std::string(const Role&)> log_path;
  // The highest agreed step, nothing when the chief cannot be asked. Called every 10 ms when kills go by steps.
  std::function<std::optional<int64_t>()> read_step;
  // Why this worker is kept away ("is drained: …", behind its name); "" when it is not, or that cannot be known. Must
  // not block for long.
  std::function<std::string(const Role&)> why_held;
  // Receives what a person should know, a line at a time.
  std::function<void(const std::string&)> say;
};

class Supervisor {
 public:
  explicit Supervisor(SupervisorOptions options);

  // Runs until every child has ended; returns the exit code of the run. Blocks. Takes SIGINT, SIGTERM, SIGHUP and
  // SIGCHLD of the process for itself; they stay blocked afterwards, so that one that comes late does not replace the
  // code. SIGPIPE and SIGTTOU are ignored from then on. Internal when a process cannot be started even once;
  // FailedPrecondition, before one is, when a log is a symbolic link.
  absl::StatusOr<int> Run();

  // Workers killed on purpose so far.
  int64_t kills() const { return policy_.kills(); }
  // Why the run failed, in the words of the process whose code it ended with; "" when that gave none.
  std::string Cause() const { return end_.has_value() ? end_->cause : ""; }

 private:
  absl::Status CheckLogs() const;
  absl::Status Perform(const std::vector<Action>& actions);
  absl::Status SpawnChild(const Role& role);
  absl::Status Feed(const Event& event);
  absl::Status ReapChildren();
  // Tells the policy how long ago each child ran, every StallCheck::kEvery.
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
    int cause_fd = -1;  // the reading end
  };
  std::map<int, Child> pids_;
  std::optional<End> end_;
};

}  // namespace lockstep::supervisor

#endif  // LOCKSTEP_DEPLOY_SUPERVISOR_SUPERVISOR_H_
