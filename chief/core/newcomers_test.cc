#include "chief/core/newcomers.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

// Worker 0 steps; 1 and 2 are ready.
struct Steps : CoreFixture {
  Steps() {
    for (int index = 0; index < 3; ++index) Add(index);
    worker(0).busy = current.id = Generation{2, 1};
    current.members = {worker(0).member};
    current.ids = {Id(0)};
  }
  bool ShouldEndGeneration() { return newcomers.ShouldEndGeneration(Now(), current, pairs); }

  GenerationLife::Current current;
  Newcomers newcomers;
};

TEST_CASE("newcomers: one that reaches all members ends the generation, once no other is about to", "[core]") {
  Steps steps;
  CHECK_FALSE(steps.ShouldEndGeneration());

  steps.Meet({0, 1});
  CHECK_FALSE(steps.ShouldEndGeneration());  // worker-2 may be ready for it in a moment
  steps.pairs.Failed(steps.Id(2), steps.Id(0), steps.now);
  CHECK(steps.ShouldEndGeneration());
}

TEST_CASE("newcomers: the first one waits a moment for those on their way, no longer", "[core]") {
  Steps steps;
  steps.Meet({0, 1});
  steps.worker(2).stage = Worker::Stage::kPreparing;
  CHECK_FALSE(steps.ShouldEndGeneration());
  steps.now += JoinBackoff::kTogether;
  CHECK(steps.ShouldEndGeneration());
}

TEST_CASE("newcomers: nobody fits into a full generation, and who leaves does not join", "[core]") {
  Steps steps;
  steps.Meet({0, 1, 2});
  CHECK(steps.ShouldEndGeneration());
  steps.worker(1).leaving = steps.worker(2).leaving = true;
  CHECK_FALSE(steps.ShouldEndGeneration());
  steps.worker(1).leaving = false;
  steps.policy.max_workers = 1;
  CHECK_FALSE(steps.ShouldEndGeneration());
}

TEST_CASE("newcomers: who is lost soon after it joined, again and again, ends no generation for a while", "[core]") {
  Steps steps;
  steps.Meet({0, 1, 2});
  steps.worker(2).leaving = true;
  for (int loss = 0; loss < 2; ++loss) {
    steps.newcomers.Joined(steps.worker(1), 10);
    steps.newcomers.Lost(steps.Now(), "host-1", "worker-1", 11);
  }

  CHECK(steps.TakeActions().size() == 1);  // people hear of it
  CHECK_FALSE(steps.ShouldEndGeneration());
  steps.now += JoinBackoff::kFirst;
  CHECK(steps.ShouldEndGeneration());
}

}  // namespace
}  // namespace lockstep::chief
