// A test harness: a supervisor's policy with a clock of its own, and the actions of its last step.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_HARNESS_H_
#define LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_HARNESS_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "deploy/supervisor/policy.h"

namespace lockstep::supervisor {

inline constexpr Role kChief{.chief = true, .index = 0};
inline Role Worker(int index) { return {.chief = false, .index = index}; }

class Harness {
 public:
  explicit Harness(PolicyOptions options) : policy(options) { Apply(Started{}); }

  void Apply(const Event& event) { last = policy.Step(now, event); }
  void Exit(Role role, int code, const std::string& cause = "") {
    Apply(ChildExited{role, {.code = code, .signal = 0}, cause});
  }
  void Die(Role role, int signal) { Apply(ChildExited{role, {.code = 0, .signal = signal}, ""}); }
  // Reports for `time`, as often as the shell does, that the child last ran at `ran`. Returns false as soon as it is
  // killed.
  bool Watch(Role role, absl::Time ran, absl::Duration time, bool debugged = false) {
    for (const absl::Time end = now + time; now < end;) {
      now += StallCheck::kEvery;
      Apply(LifeSeen{role, now - ran, debugged, "is stopped"});
      if (Signalled(role) == SIGKILL) return false;
    }
    return true;
  }
  bool Examined(Role role) const {
    for (const Action& a : last) {
      if (const auto* e = std::get_if<Examine>(&a); e != nullptr && e->role == role) return true;
    }
    return false;
  }
  void After(absl::Duration d) {
    now += d;
    Apply(Tick{});
  }

  bool Spawned(Role role) const {
    for (const Action& a : last) {
      if (const auto* s = std::get_if<Spawn>(&a); s != nullptr && s->role == role) return true;
    }
    return false;
  }
  int Signalled(Role role) const {
    for (const Action& a : last) {
      if (const auto* s = std::get_if<Signal>(&a); s != nullptr && s->role == role) return s->number;
    }
    return 0;
  }
  std::optional<ReportExit> Report(Role role) const {
    for (const Action& a : last) {
      if (const auto* exited = std::get_if<ReportExit>(&a); exited != nullptr && exited->role == role) return *exited;
    }
    return std::nullopt;
  }
  std::optional<ExitState> Reported(Role role) const {
    const std::optional<ReportExit> report = Report(role);
    return report.has_value() ? std::optional(report->how) : std::nullopt;
  }
  int Count(int signal) const {
    int n = 0;
    for (const Action& a : last) {
      if (const auto* s = std::get_if<Signal>(&a); s != nullptr && s->number == signal) ++n;
    }
    return n;
  }
  std::optional<int> Ended() const {
    for (const Action& a : last) {
      if (const auto* e = std::get_if<End>(&a)) return e->exit_code;
    }
    return std::nullopt;
  }
  std::string Cause() const {
    for (const Action& a : last) {
      if (const auto* e = std::get_if<End>(&a)) return e->cause;
    }
    return "";
  }
  std::vector<std::string> Said() const {
    std::vector<std::string> lines;
    for (const Action& a : last) {
      if (const auto* s = std::get_if<Say>(&a)) lines.push_back(s->line);
    }
    return lines;
  }

  absl::Time now = absl::UnixEpoch();
  Policy policy;
  std::vector<Action> last;
};

}  // namespace lockstep::supervisor

#endif  // LOCKSTEP_DEPLOY_SUPERVISOR_POLICY_HARNESS_H_
