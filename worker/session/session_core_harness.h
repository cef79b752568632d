// Drives a SessionCore in tests: one worker with simulated peers and a chief played by the test.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_SESSION_SESSION_CORE_HARNESS_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_CORE_HARNESS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "worker/session/session_core.h"

namespace lockstep::worker {

class WorkerHarness {
 public:
  static constexpr uint64_t kSelf = 1;
  static constexpr Term kTerm = 3;

  explicit WorkerHarness(Incarnation incarnation = {0, kSelf}) : core(Config(incarnation)) {
    policy.end_step = 1000;
    policy.audit_every_steps = 0;
  }

  // Applies an event. `last` has its actions, `all` the actions of all events.
  void Give(const Event& event) {
    last = core.Step(now, event);
    all.insert(all.end(), last.begin(), last.end());
  }
  // Lets time pass. The chief answers a heartbeat first, unless `chief_hangs`.
  void Wait(absl::Duration time) {
    if (!chief_hangs) Give(BeatAnswered{chief_term});
    now += time;
    Give(Tick{});
  }
  void Command(ChiefCommand command, Generation generation = {}, Term term = kTerm) {
    if (std::holds_alternative<Welcome>(command)) chief_term = term;
    Give(CommandReceived{ChiefFence{term, generation}, std::move(command)});
  }

  // Connects and is welcomed.
  void Join(Term term = kTerm) {
    Wait(absl::Seconds(2));
    Give(ChiefConnected{});
    Command(Welcome{"job", "worker-0", "line", "graph", policy}, {}, term);
  }
  void Prepare() {
    Command(lockstep::Prepare{"graph", "plan", ""});
    Give(Prepared{Ready{"plan", "data", absl::Milliseconds(5), 100}});
  }
  // Forms generation `counter` at `position` with this worker as `rank` of `size`; it receives the state unless it has
  // it.
  void FormAt(uint64_t counter, uint32_t size, uint32_t rank, Position position, Term term = kTerm) {
    GiveForm(counter, size, rank, position, term);
    Give(CommunicatorFormed{core.generation()});
    if (Has<SyncState>()) Give(StateSynced{core.generation(), position, "digest"});
  }
  void GiveForm(uint64_t counter, uint32_t size, uint32_t rank, Position position, Term term = kTerm) {
    Form form;
    form.lineage = "line";
    form.position = position;
    for (uint32_t r = 0; r < size; ++r) form.members.push_back(Member{{0, r == rank ? kSelf : 100 + r}, "w", "a"});
    form.source_rank = size - 1;
    if (!core.has_state() || core.position() != position) form.receivers = {rank};
    Command(form, Generation{kTerm, counter}, term);
  }
  // Brings the worker into generation {kTerm, 1} of two ranks, about to compute step 11.
  void Run() {
    Join();
    Prepare();
    FormAt(1, 2, 0, {10, 0});
  }
  // The control word of two ranks with `own` from this rank and no requests from the other.
  ControlWord WordFrom(const ControlContribution& own) const {
    ControlContribution other;
    other.free_to_save = other.hears_chief = true;
    return ControlWord{{own, other}};
  }
  ControlWord Word() const { return WordFrom(Slot()); }
  // This rank's contribution to the latest step or slice.
  ControlContribution Slot() const {
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      if (const auto* step = std::get_if<RunStep>(&*it)) return step->slot;
      if (const auto* slice = std::get_if<RunSlice>(&*it)) return slice->slot;
    }
    return {};
  }
  void Finish(uint64_t step, ControlWord word) {
    Give(StepFinished{core.generation(), step, StepOutcome::kApplied, std::move(word), StepRecord{step, 0.5}, ""});
  }
  // Finishes steps up to `step`, each with Word().
  void StepTo(uint64_t step) {
    while (core.position().step < step) Finish(core.position().step + 1, Word());
  }

  template <typename T>
  bool Has() const {
    return Find<T>(last) != nullptr;
  }
  template <typename T>
  T Last() const {
    const T* found = Find<T>(last);
    return found == nullptr ? T{} : *found;
  }
  // Messages to the chief among the actions of the last event.
  template <typename T>
  bool Told() const {
    return FindMessage<T>(last) != nullptr;
  }
  template <typename T>
  T Message() const {
    const T* found = FindMessage<T>(last);
    return found == nullptr ? T{} : *found;
  }
  std::optional<int32_t> ExitCode() const {
    const Exit* exit = Find<Exit>(all);
    return exit == nullptr ? std::nullopt : std::optional(exit->code);
  }

  bool chief_hangs = false;
  Term chief_term = kTerm;
  TrainingPolicy policy;
  absl::Time now = absl::FromUnixSeconds(1000);
  SessionCore core;
  std::vector<Action> last;
  std::vector<Action> all;

 private:
  static SessionConfig Config(Incarnation incarnation) {
    SessionConfig config;
    config.incarnation = incarnation;
    config.preferred_name = "worker-0";
    config.host = "here";
    config.peer_address = "here:1";
    return config;
  }
  template <typename T>
  static const T* Find(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const T* found = std::get_if<T>(&action)) return found;
    }
    return nullptr;
  }
  template <typename T>
  static const T* FindMessage(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      const Send* send = std::get_if<Send>(&action);
      if (send == nullptr) continue;
      if (const T* found = std::get_if<T>(&send->message)) return found;
    }
    return nullptr;
  }
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_CORE_HARNESS_H_
