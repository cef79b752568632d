#include "chief/server/tick_gate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

HeartbeatReceived BeatOf(ChiefHarness& chief, int index) {
  const FakeWorker& worker = chief.worker(index);
  return {WorkerFence{"job-1", worker.term, worker.id}, {worker.phase, worker.progress, worker.position}};
}

// The loop of the chief until `end`, on a clock of the test: worker i beats every 500 ms from `phases[i]` on, and takes
// its turn when nothing that came before is left.
void Turn(ChiefHarness& chief, const std::map<int, absl::Duration>& phases, absl::Time end) {
  TickGate gate;
  std::map<int, absl::Time> next;
  for (const auto& [index, phase] : phases) next[index] = chief.now() + phase;
  std::vector<int> queue;
  while (chief.now() < end) {
    for (auto& [index, when] : next) {
      for (; when <= chief.now(); when += absl::Milliseconds(500)) queue.push_back(index);
    }
    const auto wait = gate.Wait(chief.now(), chief.NextDeadline(), queue.size());
    if (!wait.has_value()) {
      chief.Do(Tick{});
    } else if (!queue.empty()) {
      gate.Taken();
      chief.Do(BeatOf(chief, queue.front()));
      queue.erase(queue.begin());
    } else {
      absl::Time wake = chief.now() + *wait;
      for (const auto& [index, when] : next) wake = std::min(wake, when);
      chief.Pause(wake - chief.now());
    }
  }
}

TEST_CASE("tick gate: a silent member is noticed in time, whatever the phases of the others", "[loop]") {
  const auto apart = GENERATE(absl::ZeroDuration(), absl::Milliseconds(1), absl::Milliseconds(90),
                              absl::Milliseconds(125), absl::Milliseconds(166), absl::Milliseconds(499));
  ChiefHarness chief({.workers = 4});
  REQUIRE(chief.phase() == Phase::kRunning);
  const absl::Duration limit = chief.config().policy.heartbeat_limit;

  Turn(chief, {{0, apart}, {1, 2 * apart}, {2, 3 * apart}}, chief.now() + limit + absl::Seconds(1));

  CHECK_THAT(chief.Last<WorkerChanged>().reason, Contains("silent"));
  CHECK(chief.Last<WorkerChanged>().name == "worker-3");
  CHECK(chief.View().workers.size() == 3);
}

TEST_CASE("tick gate: what came before a deadline is handled before it is judged", "[loop]") {
  TickGate gate;
  const absl::Time due = absl::FromUnixSeconds(100);

  CHECK(gate.Wait(due - absl::Seconds(1), due, 0) == absl::Seconds(1));
  CHECK(gate.Wait(due, due, 2) == absl::ZeroDuration());
  gate.Taken();
  CHECK(gate.Wait(due, due, 3) == absl::ZeroDuration());  // two more came meanwhile: they do not count
  gate.Taken();

  CHECK_FALSE(gate.Wait(due, due, 2).has_value());
}

TEST_CASE("tick gate: a queue that is never empty does not put a judgement off", "[loop]") {
  TickGate gate;
  const absl::Time due = absl::FromUnixSeconds(100);
  int taken = 0;

  while (gate.Wait(due, due, 5).has_value()) {
    gate.Taken();
    ++taken;
  }

  CHECK(taken == 5);
}

}  // namespace
}  // namespace lockstep::chief
