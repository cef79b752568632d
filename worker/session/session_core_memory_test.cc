// When a worker outside of generations gives back the memory that only steps need, and when it gives itself up.
#include <catch2/catch.hpp>
#include <variant>

#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kAfter = SessionConfig().release_after;

// How often memory was given back so far.
int Releases(const WorkerHarness& worker) {
  int count = 0;
  for (const Action& action : worker.all) count += std::holds_alternative<ReleaseMemory>(action) ? 1 : 0;
  return count;
}

void Break(WorkerHarness& worker) {
  const Generation generation = worker.core.generation();
  worker.Command(Verdict{"a peer died"}, generation);
  worker.Give(ComputingStopped{generation, false});
}

TEST_CASE("session: who is parked for a while gives its memory back, once for each time", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.StepTo(11);
  worker.Wait(10 * kAfter);  // a long step
  CHECK(Releases(worker) == 0);
  Break(worker);

  CHECK(worker.core.NextDeadline() <= worker.now + kAfter);
  worker.Wait(kAfter - absl::Seconds(1));
  CHECK(Releases(worker) == 0);
  worker.Wait(absl::Seconds(1));
  CHECK(worker.Has<ReleaseMemory>());
  worker.Wait(10 * kAfter);
  CHECK(Releases(worker) == 1);
  CHECK(worker.core.has_state());

  worker.FormAt(2, 2, 0, {11, 0});
  CHECK(worker.Last<RunStep>().step == 12);
  Break(worker);
  worker.Wait(kAfter);
  CHECK(Releases(worker) == 2);
}

TEST_CASE("session: a generation that is formed anew soon after a death finds the memory in place", "[session]") {
  WorkerHarness worker;
  worker.Run();
  for (uint64_t counter = 2; counter < 6; ++counter) {
    Break(worker);
    worker.Wait(kAfter / 2);
    worker.FormAt(counter, 2, 0, worker.core.position());
    worker.Wait(kAfter);
  }

  CHECK(Releases(worker) == 0);
}

TEST_CASE("session: a spare gives its memory back as well, and anew after each preparation", "[session]") {
  WorkerHarness worker;
  worker.Join();
  worker.Wait(10 * kAfter);
  CHECK(Releases(worker) == 0);  // there is no replica yet
  worker.Prepare();
  worker.Wait(kAfter);
  CHECK(Releases(worker) == 1);

  worker.Command(lockstep::Prepare{"graph", "plan", "", "other settings"});
  worker.Wait(10 * kAfter);
  CHECK(Releases(worker) == 1);  // at work
  worker.Give(Prepared{Ready{"plan", "data", absl::Milliseconds(5), 100}});
  worker.Wait(kAfter);
  CHECK(Releases(worker) == 2);
}

TEST_CASE("session: who cannot stop computing ends as one that is stuck, who ends otherwise does not", "[session]") {
  WorkerHarness stuck;
  stuck.Run();
  stuck.Command(Verdict{"it made no progress"}, stuck.core.generation());
  stuck.Wait(stuck.policy.abort_limit);
  REQUIRE(stuck.Has<Exit>());
  CHECK(stuck.Last<Exit>().stuck);

  WorkerHarness told;
  told.Run();
  told.Command(Shutdown{70, "the job failed"});
  REQUIRE(told.Has<Exit>());
  CHECK_FALSE(told.Last<Exit>().stuck);
}

}  // namespace
}  // namespace lockstep::worker
