// Drives a SessionCore by hand in tests: one worker among simulated peers and a chief that says what the test says.
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

  // The actions of the newest event stand in `last`, all there ever were in `all`.
  void Give(const Event& event) {
    last = core.Step(now, event);
    all.insert(all.end(), last.begin(), last.end());
  }
  // The chief has answered a heartbeat before, unless it hangs.
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
  // Forms generation `counter` with this worker as `rank` of `size` at `position`; it receives unless it holds that.
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
  // In generation {kTerm, 1} of two ranks, about to compute step 11.
  void Run() {
    Join();
    Prepare();
    FormAt(1, 2, 0, {10, 0});
  }
  // The word that every rank of two contributed nothing to, beyond this rank's own slot.
  ControlWord WordFrom(const ControlContribution& own) const {
    ControlContribution other;
    other.free_to_save = other.hears_chief = true;
    return ControlWord{{own, other}};
  }
  ControlWord Word() const { return WordFrom(Slot()); }
  // What this rank contributed to the work under way.
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
  // Steps up to `step` with words that carry what this rank contributed.
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
  // Messages to the chief, in the actions of the newest event.
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
