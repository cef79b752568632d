// Decides which processes `lockstep run` starts, restarts, signals and kills, and with which code it ends. Pure: no
// processes, clock or randomness of the machine; time and the seed are arguments, so every decision can be tested.
//
//   1 kRunning ──SIGINT/SIGTERM/SIGHUP, chief done, chief lost for good──▶ 2 kStopping ──nobody alive──▶ 3 kEnded
//
// Invariants
//   * A process that ended with a code that a restart cannot mend is never started again.
//   * A process that has not run for StallCheck::kLimit is killed and started again, unless a debugger holds it.
//   * A kill made on purpose (`--kill-worker-every`) is never taken for a failure.
//   * The run ends with the chief's exit code once the chief has given one; a worker's, which may only repeat what the
//     chief told it, counts where the chief was merely stopped for want of workers.
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
struct Started {};  // begin: nothing runs yet
struct ChildExited {
  Role role;
  ExitState how;
  std::string cause;  // why it failed, in its own words; "" when it gave none
};
struct SpawnFailed {  // the process of a Spawn could not be made: no memory, too many processes, a log that is a link
  Role role;
  std::string reason;
};
struct Held {  // the process of a Spawn that may be held was not made: this worker is kept away
  Role role;
  std::string reason;  // "is drained: …", behind its name
};
struct StopSignal {     // SIGINT, SIGTERM or SIGHUP reached the supervisor
  bool hangup = false;  // SIGHUP: the terminal is gone
};
struct StepSeen {
  int64_t step = 0;  // highest agreed step, as the chief reports it
};
// How long ago a child last showed that it runs, by a clock that both see. Told every StallCheck::kEvery of every child
// that can be asked; nothing is concluded from what is not told.
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
  bool may_be_held = false;  // it left when it was told to: first it is asked whether it may come back
};
struct ReportExit {  // of a worker, to the chief: it waits for nobody that is gone, and counts crashes
  Role role;
  ExitState how;
  bool last = false;  // no worker is left: the job cannot go on
  std::string cause;  // of `how`
};
struct Signal {
  Role role;
  int number = 0;
  std::string reason;
};
struct Examine {  // say what the process does, before it is killed for doing nothing
  Role role;
};
struct Say {
  std::string line;
};
struct End {
  int exit_code = 0;
  std::string cause;  // of the process whose code it is, behind its name for a worker; "" when it gave none
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
  absl::Duration grace = absl::Seconds(30);  // from the chief's end to SIGKILL; while it lives it may save
  // A stop signal that follows the first one this closely says the same again: `timeout`, shells and terminals send
  // several at once. A later one is a person who does not want to wait.
  absl::Duration same_stop = absl::Seconds(1);
  absl::Duration first_backoff = absl::Milliseconds(200);  // of a process that died within `healthy_after`
  absl::Duration last_backoff = absl::Seconds(5);
  absl::Duration held_for = absl::Seconds(5);  // between two questions whether a worker may come back
  absl::Duration healthy_after = absl::Seconds(2);
  // A chief that ends by a crash signal or by code 69 or 74 this often, each time within `chief_healthy_after` of its
  // start, is given up. A full disk may take a save to be noticed: a chief's health takes longer to show.
  int max_chief_crashes = 3;
  absl::Duration chief_healthy_after = absl::Minutes(1);
};

// True for codes after which the same process would only fail again: 64, 65, 76, 77, 78, and 70 of a chief. A worker's
// 70 is one failure of several that the job may have: the chief counts them, and ends with 70 itself when it is enough.
bool IsFinal(const Role& role, int exit_code);
// True for signals that mean a defect of the process itself: SEGV, ABRT, BUS, FPE, ILL.
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
    bool killed = false;    // on purpose, and its end is not seen yet
    bool left = false;      // its last process was told to leave (75)
    std::string held;       // why it was kept from coming back, as it was said; "" when it was not
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
  bool is_workers_verdict_ = false;  // so far exit_code_ is a worker's
  absl::Time kill_all_at_ = absl::InfiniteFuture();
  absl::Time next_kill_at_ = absl::InfiniteFuture();
  std::optional<int64_t> next_kill_step_;
  uint64_t random_ = 0;
  int64_t kills_ = 0;
};

}  // namespace lockstep::supervisor

#endif  // LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_H_
