// Decides which processes `lockstep run` starts, restarts, signals and kills, and with which code it ends. Pure: no
// processes, no clock and no randomness of the machine; time and seed are arguments, so every decision can be tested.
//
//   1 kRunning ──SIGINT/SIGTERM/SIGHUP, chief done, chief lost for good──▶ 2 kStopping ──nobody alive──▶ 3 kEnded
//
// Invariants
//   * A process whose exit code shows that a restart cannot help is never started again.
//   * A process that has not run for StallCheck::kLimit is killed and started again, unless a debugger holds it.
//   * A kill made on purpose (`--kill-worker-every`) is never taken for a failure.
//   * The run ends with the chief's exit code. A worker's code, which may only repeat what the chief told it, counts
//     only if the chief was merely stopped for lack of workers.
// Threading: thread-compatible; Supervisor owns the only instance.
#ifndef LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_H_
#define LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_H_

#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/liveness/stall_check.h"

namespace lockstep::supervisor {

// A process that a signal ended counts as one with the code 128 + signal, as in a shell.
inline constexpr int kKilledExitBase = 128;
// The exit code of a run that a second stop signal ended.
inline constexpr int kSecondStopExit = kKilledExitBase + SIGINT;

// Which child: the chief, or worker number `index` (0-based).
struct Role {
  bool chief = false;
  int index = 0;

  friend auto operator<=>(const Role&, const Role&) = default;
};

std::string RoleName(const Role& role);

// How a process ended: by a code, or by a signal when `signal` is not zero.
struct ExitState {
  int code = 0;
  int signal = 0;
};

// --- events -------------------------------------------------------------------------------------------------------
struct Started {};  // the run begins; no process exists yet
struct ChildExited {
  Role role;
  ExitState how;
  std::string cause;  // its own message why it failed; "" if it gave none
};
struct SpawnFailed {  // the process of a Spawn could not be made: no memory, too many processes, a log that is a link
  Role role;
  std::string reason;
};
struct Held {  // a Spawn with `may_be_held` was not carried out: this worker is kept away
  Role role;
  std::string reason;  // "is drained: …", to follow its name
};
struct StopSignal {     // SIGINT, SIGTERM or SIGHUP reached the supervisor
  bool hangup = false;  // SIGHUP: the terminal is gone
};
struct StepSeen {
  int64_t step = 0;  // highest agreed step, as the chief reports it
};
// How long ago a child last showed that it runs, by a clock that both processes see. Reported every StallCheck::kEvery
// for every child that can be examined; a missing report means nothing.
struct LifeSeen {
  Role role;
  absl::Duration silent;
  bool debugged = false;  // a debugger holds it
  std::string state;      // "is stopped"
};
struct Tick {};

using Event = std::variant<Started, ChildExited, SpawnFailed, Held, StopSignal, StepSeen, LifeSeen, Tick>;

// --- actions ------------------------------------------------------------------------------------------------------
struct Spawn {
  Role role;
  bool may_be_held = false;  // it left on request: the shell first asks whether it may come back
};
struct ReportExit {  // report a worker's end to the chief, which stops waiting for it and counts crashes
  Role role;
  ExitState how;
  bool last = false;  // no worker is left, so the job cannot go on
  std::string cause;  // of `how`
};
struct Signal {
  Role role;
  int number = 0;
  std::string reason;
};
struct Examine {  // log what the process does, before it is killed for doing nothing
  Role role;
};
struct Say {
  std::string line;
};
struct End {
  int exit_code = 0;
  std::string cause;  // message of the process with this code, behind its name for a worker; "" if it gave none
};

using Action = std::variant<Spawn, ReportExit, Signal, Examine, Say, End>;

struct KillSchedule {  // at most one of the two is set
  std::optional<absl::Duration> period;
  std::optional<int64_t> steps;
  uint64_t seed = 0;
};

struct PolicyOptions {
  int workers = 1;
  KillSchedule kills;
  absl::Duration grace = absl::Seconds(30);  // time from the chief's end to SIGKILL; a live chief may still save
  // A second stop signal within this time is a repetition: `timeout`, shells and terminals send several at once. A
  // later one is from a person who does not want to wait.
  absl::Duration same_stop = absl::Seconds(1);
  absl::Duration first_backoff = absl::Milliseconds(200);  // after a death within `healthy_after`
  absl::Duration last_backoff = absl::Seconds(5);
  absl::Duration held_for = absl::Seconds(5);  // interval between two checks whether a worker may come back
  absl::Duration healthy_after = absl::Seconds(2);
  // A chief that ends by a crash signal or by code 69 or 74 this often, each time within `chief_healthy_after` of its
  // start, is given up. That limit is long because a full disk may be noticed only by a save.
  int max_chief_crashes = 3;
  absl::Duration chief_healthy_after = absl::Minutes(1);
};

// Whether the same process would only fail again after this code: 64, 65, 76, 77, 78, and 70 of a chief. A worker's 70
// is one of the failures that the job tolerates: the chief counts them, and ends with 70 itself once there are too
// many.
bool IsFinal(const Role& role, int exit_code);
// Whether a signal means a defect of the process itself: SEGV, ABRT, BUS, FPE, ILL.
bool IsCrash(int signal);

class Policy {
 public:
  explicit Policy(PolicyOptions options);

  // Applies one event and returns the actions to perform, in order. REQUIRES: `now` never goes backwards.
  std::vector<Action> Step(absl::Time now, const Event& event);
  // The next instant at which a Tick could change anything.
  absl::Time NextDeadline() const;

  int64_t kills() const { return kills_; }

 private:
  struct Child {
    bool alive = false;
    bool finished = false;  // never started again
    bool killed = false;    // on purpose; its end was not seen yet
    bool left = false;      // its last process was told to leave (75)
    std::string held;       // the reason why it was kept away, as announced; "" if it was not
    absl::Time started;
    absl::Time restart_at = absl::InfiniteFuture();
    absl::Duration backoff = absl::ZeroDuration();
    StallCheck life;
  };

  void OnStarted(absl::Time now, std::vector<Action>& out);
  void OnChildExited(absl::Time now, const ChildExited& event, std::vector<Action>& out);
  void OnChiefExited(absl::Time now, const ChildExited& event, std::vector<Action>& out);
  void OnWorkerExited(absl::Time now, const ChildExited& event, std::vector<Action>& out);
  void OnSpawnFailed(absl::Time now, const SpawnFailed& event, std::vector<Action>& out);
  void OnHeld(absl::Time now, const Held& event, std::vector<Action>& out);
  void OnStopSignal(absl::Time now, const StopSignal& event, std::vector<Action>& out);
  void OnStepSeen(absl::Time now, int64_t step, std::vector<Action>& out);
  void OnLifeSeen(absl::Time now, const LifeSeen& event, std::vector<Action>& out);
  void OnTick(absl::Time now, std::vector<Action>& out);
  void StartChild(absl::Time now, Role role, std::vector<Action>& out);
  void ScheduleRestart(absl::Time now, Child& child);
  void KillOneWorker(absl::Time now, std::vector<Action>& out);
  void BeginStop(absl::Time now, int exit_code, const std::string& cause, bool tell_workers, std::vector<Action>& out);
  void MaybeEnd(std::vector<Action>& out);
  void SignalAll(int number, const std::string& reason, bool workers_only, std::vector<Action>& out);
  bool AnyAlive() const;

  PolicyOptions options_;
  std::map<Role, Child> children_;
  bool stopping_ = false;
  bool ended_ = false;
  std::optional<absl::Time> stop_signal_at_;  // of the first one
  int chief_crashes_ = 0;
  std::optional<int> exit_code_;
  std::string cause_;                // of exit_code_
  bool is_workers_verdict_ = false;  // exit_code_ is a worker's
  absl::Time kill_all_at_ = absl::InfiniteFuture();
  absl::Time next_kill_at_ = absl::InfiniteFuture();
  std::optional<int64_t> next_kill_step_;
  uint64_t random_ = 0;
  int64_t kills_ = 0;
};

}  // namespace lockstep::supervisor

#endif  // LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_H_
