#include "chief/core/awaited_text.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

struct People : CoreFixture {
  People() {
    policy.min_workers = 3;
    life.Begin(now, term, policy);
    life.AdvanceAdopting(TickAfter(absl::Minutes(1)), "lineage");
    life.AdvanceBreaking(Now(), 0);
  }
  std::string Text() {
    const CoreContext context = Now();
    return WaitingText({context, life, pairs, gone, "; drained: host-9"});
  }

  GenerationLife life;
  Departures gone;
};

TEST_CASE("awaited text: who is missing, and why", "[core]") {
  People people;
  people.Add(0);
  people.Add(1).stage = Worker::Stage::kPreparing;
  people.gone.Count("worker-7", WorkerChange::kLost, "reset");

  CHECK(people.Text() == "1/3 joined; missing worker-1 (preparing), worker-7 (reset); drained: host-9");
  people.gone.Came(people.Id(7), "worker-7");
  CHECK_THAT(people.Text(), Contains("1 that never connected"));
}

TEST_CASE("awaited text: pairs that cannot connect are named", "[core]") {
  People people;
  people.policy.min_workers = 2;
  people.Add(0);
  people.Add(1);
  people.pairs.Failed(people.Id(0), people.Id(1), people.now);
  CHECK_THAT(people.Text(), Contains("cannot connect to each other: worker-1 and worker-0"));
}

TEST_CASE("awaited text: what is tested, and who pauses", "[core]") {
  People people;
  people.policy.min_workers = 2;
  people.Add(0);
  people.Add(1);
  people.Meet({0, 1});
  people.pairs.Suspect(people.Id(0), people.Id(1), false, people.now);
  CHECK_THAT(people.Text(), Contains("a test whether worker-1 reaches worker-0"));
  people.pairs.SuspectItself(people.Id(0), people.now);
  CHECK_THAT(people.Text(), Contains("worker-0, which pauses"));
}

TEST_CASE("awaited text: a generation that forms says how many have synchronised", "[core]") {
  People people;
  people.life.SendForm(people.Now(), lockstep::Form(), {&people.Add(0), &people.Add(1)}, 0);
  people.life.Formed(people.worker(0), Position());
  CHECK(people.Text() == "generation 2.1: 1/2 members synchronised");
}

TEST_CASE("awaited text: each worker has a line with what it is", "[core]") {
  People people;
  people.life.SendForm(people.Now(), lockstep::Form(), {&people.Add(0)}, 0);
  people.Add(1);
  people.Add(2).stage = Worker::Stage::kPreparing;
  people.Add(3).leaving = true;

  const auto lines = WorkerLines(people.roster, people.life, Stragglers());

  REQUIRE(lines.size() == 4);
  CHECK(lines[0].state == "member");
  CHECK(lines[0].rank == 0);
  CHECK(lines[1].state == "spare");
  CHECK(lines[2].state == "joining");
  CHECK(lines[3].state == "leaving");
}

}  // namespace
}  // namespace lockstep::chief
