#include "deploy/supervisor/policy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"

namespace lockstep::supervisor {
namespace {

constexpr Role kChief{.chief = true, .index = 0};

std::string Describe(ExitState how) {
  return how.signal != 0 ? absl::StrCat("was ended by signal ", how.signal)
                         : absl::StrCat("ended with code ", how.code);
}

// How a process ended that will be started again, and why: nobody else says so.
std::string DescribeWithCause(const ChildExited& event) {
  return absl::StrCat(Describe(event.how), event.cause.empty() ? "" : ": ", event.cause);
}

}  // namespace

std::string RoleName(const Role& role) { return role.chief ? "chief" : absl::StrCat("worker-", role.index); }

bool IsFinal(const Role& role, int exit_code) {
  switch (exit_code) {
    case kExitUsage:
    case kExitBadData:
    case kExitFenced:
    case kExitBadToken:
    case kExitBadJob:
      return true;
    case kExitBug:
      return role.chief;
    default:
      return false;
  }
}

bool IsCrash(int signal) {
  return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
}

Policy::Policy(PolicyOptions options) : options_(options), random_(options.kills.seed) {
  next_kill_step_ = options_.kills.steps;
  children_[kChief] = {};
  for (int i = 0; i < options_.workers; ++i) children_[{.chief = false, .index = i}] = {};
}

std::vector<Action> Policy::Step(absl::Time now, const Event& event) {
  std::vector<Action> out;
  if (ended_) return out;
  if (std::holds_alternative<Started>(event)) OnStarted(now, out);
  if (const auto* exited = std::get_if<ChildExited>(&event)) OnChildExited(now, *exited, out);
  if (const auto* failed = std::get_if<SpawnFailed>(&event)) OnSpawnFailed(now, *failed, out);
  if (const auto* held = std::get_if<Held>(&event)) OnHeld(now, *held, out);
  if (const auto* stop = std::get_if<StopSignal>(&event)) OnStopSignal(now, *stop, out);
  if (const auto* seen = std::get_if<StepSeen>(&event)) OnStepSeen(now, seen->step, out);
  if (const auto* life = std::get_if<LifeSeen>(&event)) OnLifeSeen(now, *life, out);
  if (std::holds_alternative<Tick>(event)) OnTick(now, out);
  MaybeEnd(out);
  return out;
}

absl::Time Policy::NextDeadline() const {
  absl::Time next = std::min(kill_all_at_, stopping_ ? absl::InfiniteFuture() : next_kill_at_);
  for (const auto& [role, child] : children_) next = std::min(next, child.restart_at);
  return next;
}

void Policy::OnStarted(absl::Time now, std::vector<Action>& out) {
  for (const auto& [role, child] : children_) StartChild(now, role, out);
  if (options_.kills.period.has_value()) next_kill_at_ = now + *options_.kills.period;
}

void Policy::StartChild(absl::Time now, Role role, std::vector<Action>& out) {
  Child& child = children_[role];
  child.alive = true;
  child.started = now;
  child.life = StallCheck();
  child.restart_at = absl::InfiniteFuture();
  out.emplace_back(Spawn{.role = role, .may_be_held = child.left});
}

// At once after a healthy life; doubling while a process keeps dying young.
void Policy::ScheduleRestart(absl::Time now, Child& child) {
  if (now - child.started >= options_.healthy_after) {
    child.backoff = absl::ZeroDuration();
  } else {
    child.backoff = std::clamp(2 * child.backoff, options_.first_backoff, options_.last_backoff);
  }
  child.restart_at = now + child.backoff;
}

void Policy::OnChildExited(absl::Time now, const ChildExited& event, std::vector<Action>& out) {
  auto found = children_.find(event.role);
  if (found == children_.end() || !found->second.alive) return;
  found->second.alive = false;
  found->second.killed = false;
  if (event.role.chief) {
    OnChiefExited(now, event, out);
  } else {
    OnWorkerExited(now, event, out);
  }
  OnTick(now, out);
}

void Policy::OnChiefExited(absl::Time now, const ChildExited& event, std::vector<Action>& out) {
  const ExitState how = event.how;
  Child& chief = children_[kChief];
  const bool gave_code = how.signal == 0;
  // What the last worker ended with was the job's own end, heard from the chief a moment before the chief ended too.
  if (is_workers_verdict_ && gave_code && how.code != kExitPreempted) exit_code_.reset();
  if (gave_code && (how.code == kExitDone || how.code == kExitPreempted || IsFinal(kChief, how.code))) {
    chief.finished = true;
    // Members have heard it from the chief; a worker that was still on its way to it would wait for nobody.
    BeginStop(now, how.code, event.cause, /*tell_workers=*/true, out);
    return;
  }
  if (stopping_) {
    chief.finished = true;
    BeginStop(now, gave_code ? how.code : kKilledExitBase + how.signal, event.cause, /*tell_workers=*/true, out);
    return;
  }
  const bool spends = gave_code || IsCrash(how.signal);
  const bool healthy = now - chief.started >= options_.chief_healthy_after;
  chief_crashes_ = spends ? (healthy ? 1 : chief_crashes_ + 1) : 0;
  if (chief_crashes_ >= options_.max_chief_crashes) {
    chief.finished = true;
    out.emplace_back(
        Say{absl::StrCat("the chief ", Describe(how), ", ", chief_crashes_, " times in a row: giving up")});
    BeginStop(now, gave_code ? how.code : kExitBug, event.cause, /*tell_workers=*/true, out);
    return;
  }
  out.emplace_back(Say{absl::StrCat("the chief ", DescribeWithCause(event), "; starting it again")});
  ScheduleRestart(now, chief);
}

void Policy::OnWorkerExited(absl::Time now, const ChildExited& event, std::vector<Action>& out) {
  const Role role = event.role;
  const ExitState how = event.how;
  Child& worker = children_[role];
  const bool for_good = how.signal == 0 && (how.code == kExitDone || IsFinal(role, how.code));
  worker.finished = stopping_ || for_good;
  worker.left = how.signal == 0 && how.code == kExitPreempted;
  worker.held.clear();
  const bool any_left = std::any_of(children_.begin(), children_.end(),
                                    [](const auto& entry) { return !entry.first.chief && !entry.second.finished; });
  const bool ends_job = !stopping_ && !any_left && how.code != kExitDone;
  // After a second stop signal nobody waits, and a chief that hangs must not hold the end up.
  if (children_[kChief].alive && !exit_code_.has_value()) {
    out.emplace_back(ReportExit{.role = role, .how = how, .last = ends_job, .cause = event.cause});
  }
  if (stopping_) return;
  if (for_good && how.code == kExitDone) return;  // the job is done; the chief says so as well
  if (for_good) {
    out.emplace_back(Say{absl::StrCat(RoleName(role), " ", Describe(how), "; it is not started again")});
    if (!ends_job) return;
    is_workers_verdict_ = !exit_code_.has_value();
    const std::string cause = event.cause.empty() ? "" : absl::StrCat(RoleName(role), ": ", event.cause);
    BeginStop(now, how.code, cause, /*tell_workers=*/false, out);
    return;
  }
  ScheduleRestart(now, worker);
  out.emplace_back(Say{absl::StrCat(RoleName(role), " ", DescribeWithCause(event), "; starting it again")});
}

// A machine that is short of processes for a moment says nothing about the one that was to start: no failure of it.
void Policy::OnSpawnFailed(absl::Time now, const SpawnFailed& event, std::vector<Action>& out) {
  Child& child = children_[event.role];
  if (!child.alive) return;
  child.alive = false;
  out.emplace_back(Say{absl::StrCat("cannot start the ", RoleName(event.role), ": ", event.reason, "; trying again")});
  if (!stopping_) ScheduleRestart(now, child);
}

void Policy::OnHeld(absl::Time now, const Held& event, std::vector<Action>& out) {
  Child& child = children_[event.role];
  if (!child.alive) return;
  child.alive = false;
  if (stopping_) return;
  child.restart_at = now + options_.held_for;
  if (std::exchange(child.held, event.reason) == event.reason) return;
  out.emplace_back(Say{absl::StrCat(RoleName(event.role), " ", event.reason)});
}

void Policy::OnStopSignal(absl::Time now, const StopSignal& event, std::vector<Action>& out) {
  if (!stop_signal_at_.has_value()) {
    stop_signal_at_ = now;
    if (!exit_code_.has_value()) {
      out.emplace_back(Say{children_[kChief].alive
                               ? "stopping: saving first (press Ctrl-C again after a second to end without saving)"
                               : "stopping"});
    }
    if (children_[kChief].alive) {
      // The chief saves, stops the workers and ends with 75 itself. However long that save takes, it is the one thing
      // that must not be cut short: only a second signal does.
      stopping_ = true;
      out.emplace_back(Signal{.role = kChief, .number = SIGTERM, .reason = "stop"});
      for (auto& [role, child] : children_) child.restart_at = absl::InfiniteFuture();
    } else {
      BeginStop(now, kExitPreempted, /*cause=*/"", /*tell_workers=*/true, out);
    }
    return;
  }
  // A terminal that closes while the job saves asks for no haste.
  if (event.hangup || now - *stop_signal_at_ < options_.same_stop) return;
  if (!exit_code_.has_value()) exit_code_ = kSecondStopExit;
  stopping_ = true;
  SignalAll(SIGKILL, "second stop signal", /*workers_only=*/false, out);
}

void Policy::OnStepSeen(absl::Time now, int64_t step, std::vector<Action>& out) {
  if (stopping_ || !next_kill_step_.has_value() || step < *next_kill_step_) return;
  next_kill_step_ = step + *options_.kills.steps;
  KillOneWorker(now, out);
}

// Nobody else ends a process that does not run: its own watch over itself stands as well, and what it holds (a lock, a
// name, the place of a member) is held for ever.
void Policy::OnLifeSeen(absl::Time now, const LifeSeen& event, std::vector<Action>& out) {
  const auto found = children_.find(event.role);
  if (found == children_.end() || !found->second.alive) return;
  StallCheck& life = found->second.life;
  if (!life.HasStalled(now, event.silent) || event.debugged) return;
  life = StallCheck();  // the kill is on its way
  out.emplace_back(Examine{event.role});
  out.emplace_back(Signal{.role = event.role,
                          .number = SIGKILL,
                          .reason = absl::StrCat("it ", event.state, " and has not run for ",
                                                 absl::FormatDuration(absl::Trunc(event.silent, absl::Seconds(1))))});
}

void Policy::OnTick(absl::Time now, std::vector<Action>& out) {
  if (now >= kill_all_at_) {
    kill_all_at_ = absl::InfiniteFuture();
    for (const auto& [role, child] : children_) {
      if (child.alive) out.emplace_back(Examine{role});
    }
    SignalAll(SIGKILL, "the grace period is over", /*workers_only=*/false, out);
  }
  if (stopping_) return;
  if (now >= next_kill_at_) {
    next_kill_at_ = now + *options_.kills.period;
    KillOneWorker(now, out);
  }
  for (auto& [role, child] : children_) {
    if (!child.alive && !child.finished && now >= child.restart_at) StartChild(now, role, out);
  }
}

void Policy::KillOneWorker(absl::Time, std::vector<Action>& out) {
  std::vector<Role> alive;
  for (const auto& [role, child] : children_) {
    if (!role.chief && child.alive && !child.killed) alive.push_back(role);
  }
  if (alive.empty()) return;
  random_ += 0x9e3779b97f4a7c15ULL;  // splitmix64
  uint64_t z = random_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  const Role victim = alive[(z ^ (z >> 31)) % alive.size()];
  children_[victim].killed = true;
  ++kills_;
  out.emplace_back(Signal{.role = victim, .number = SIGKILL, .reason = "--kill-worker-every"});
}

void Policy::BeginStop(absl::Time now, int exit_code, const std::string& cause, bool tell_workers,
                       std::vector<Action>& out) {
  stopping_ = true;
  if (!exit_code_.has_value()) {
    exit_code_ = exit_code;
    cause_ = cause;
  }
  kill_all_at_ = std::min(kill_all_at_, now + options_.grace);
  for (auto& [role, child] : children_) child.restart_at = absl::InfiniteFuture();
  if (tell_workers) SignalAll(SIGTERM, "the chief is gone", /*workers_only=*/true, out);
  if (children_[kChief].alive) {
    out.emplace_back(Signal{.role = kChief, .number = SIGTERM, .reason = "no worker is left"});
  }
}

void Policy::MaybeEnd(std::vector<Action>& out) {
  if (!stopping_ || AnyAlive() || ended_) return;
  ended_ = true;
  kill_all_at_ = absl::InfiniteFuture();
  out.emplace_back(End{.exit_code = exit_code_.value_or(kExitPreempted), .cause = cause_});
}

void Policy::SignalAll(int number, const std::string& reason, bool workers_only, std::vector<Action>& out) {
  for (const auto& [role, child] : children_) {
    if (child.alive && !(workers_only && role.chief))
      out.emplace_back(Signal{.role = role, .number = number, .reason = reason});
  }
}

bool Policy::AnyAlive() const {
  return std::any_of(children_.begin(), children_.end(), [](const auto& entry) { return entry.second.alive; });
}

}  // namespace lockstep::supervisor
