// A test fixture for one part of the coordinator: a roster that the test fills, an instant that it moves, and the
// actions that came out.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_CORE_CORE_FIXTURE_H_
#define LOCKSTEP_CHIEF_CORE_CORE_FIXTURE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/core/core_context.h"
#include "chief/core/reachability.h"

namespace lockstep::chief {

struct CoreFixture {
  CoreFixture() {
    policy.job = "job";
    policy.lineage = job_lineage;
    policy.max_workers = 8;
    policy.training.logical_shards = 8;
  }

  // The context of an event other than a Tick.
  CoreContext Now() { return {policy, term, now, false, roster, out, history, job_lineage}; }
  // The context of a Tick, `passed` later.
  CoreContext TickAfter(absl::Duration passed) {
    now += passed;
    return {policy, term, now, true, roster, out, history, job_lineage};
  }

  static Incarnation Id(int index) { return Incarnation{1, static_cast<uint64_t>(index) + 1}; }
  // Adds a worker that is ready, at rest and without a state. REQUIRES: it is not in the roster.
  Worker& Add(int index, const std::string& host = "") {
    Worker worker;
    worker.member = Member{Id(index), absl::StrCat("worker-", index), absl::StrCat("10.0.0.", index, ":1")};
    worker.session = static_cast<SessionId>(index) + 1;
    worker.host = host.empty() ? absl::StrCat("host-", index) : host;
    worker.stage = Worker::Stage::kReady;
    worker.heard = worker.progressed = now;
    pairs.Came(worker.id());
    return roster.Add(worker);
  }
  Worker& worker(int index) { return *roster.Find(Id(index)); }
  void Remove(int index) { roster.Remove(Id(index)); }
  // Marks every pair of these workers as having reached each other.
  void Meet(const std::vector<int>& indexes) {
    for (int one : indexes) {
      for (int other : indexes) {
        if (one < other) pairs.Succeeded(Id(one), Id(other));
      }
    }
  }
  void Hold(int index, uint64_t step) { worker(index).held = HeldState{history.lineage(), {step, 0}, ""}; }
  std::vector<Worker*> All() { return roster.InOrder(); }

  // The actions since the last call.
  std::vector<Action> TakeActions() { return out.Take(); }
  // The commands of one type among `actions`, once for each session that receives it.
  template <typename Command>
  static std::vector<Command> CommandsIn(const std::vector<Action>& actions) {
    std::vector<Command> found;
    for (const Action& action : actions) {
      const auto* send = std::get_if<Send>(&action);
      const auto* all = std::get_if<SendToAll>(&action);
      const ChiefCommand* command = send != nullptr ? &send->command : all != nullptr ? &all->command : nullptr;
      if (command == nullptr || !std::holds_alternative<Command>(*command)) continue;
      for (size_t i = 0; i < (all != nullptr ? all->sessions.size() : 1); ++i) {
        found.push_back(std::get<Command>(*command));
      }
    }
    return found;
  }
  template <typename Command>
  std::vector<Command> TakeCommands() {
    return CommandsIn<Command>(TakeActions());
  }

  Lineage job_lineage = "lineage";
  JobPolicy policy;
  Term term = 2;
  absl::Time now = absl::FromUnixSeconds(1000);
  Roster roster;
  Outbox out{2};
  History history{"lineage"};
  Reachability pairs;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_CORE_FIXTURE_H_
