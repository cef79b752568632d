#include "chief/core/straggler_watch.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// Workers 0 and 1 step, 0 slowly; 2 is spare.
struct Slow : CoreFixture {
  Slow() {
    policy.replace_stragglers = true;
    policy.max_workers = 2;
    for (int index = 0; index < 3; ++index) Add(index);
    current.id = Generation{2, 1};
    for (int index = 0; index < 2; ++index) {
      worker(index).busy = current.id;
      current.members.push_back(worker(index).member);
      current.ids.insert(Id(index));
    }
    Meet({0, 1, 2});
  }
  StragglerWatch::Facts Facts() { return {current, pairs, newcomers}; }
  void Report(double first, double second) {
    for (double done : {0.0, 30.0}) {
      for (int index = 0; index < 2; ++index) {
        const double seconds = done * (index == 0 ? first : second);
        lockstep::Report report;
        report.stats = {{"steps", done + 1}, {"samples", done}, {"compute_seconds", seconds}};
        watch.NoteSpeed(Now(), Facts(), worker(index), report);
      }
      now += absl::Seconds(30);
    }
  }

  GenerationLife::Current current;
  Newcomers newcomers;
  StragglerWatch watch;
};

TEST_CASE("straggler watch: a spare worker takes a straggler's place, each pair once", "[core]") {
  Slow slow;
  CHECK(slow.watch.SwapText(slow.Now(), slow.Facts()).empty());

  slow.Report(3, 1);

  CHECK_THAT(slow.watch.SwapText(slow.Now(), slow.Facts()), Contains("worker-2 takes the place of worker-0"));
  CHECK(slow.watch.SwapText(slow.Now(), slow.Facts()).empty());
}

TEST_CASE("straggler watch: no swap without a spare worker that may take part", "[core]") {
  Slow slow;
  SECTION("the job only warns") { slow.policy.replace_stragglers = false; }
  SECTION("there is room: a newcomer joins in any case") { slow.policy.max_workers = 3; }
  SECTION("the spare worker leaves") { slow.worker(2).leaving = true; }
  SECTION("the spare worker does not reach all") { slow.pairs.Failed(slow.Id(2), slow.Id(1), slow.now); }
  slow.Report(3, 1);
  CHECK(slow.watch.marks().Straggles(slow.Id(0)));
  CHECK(slow.watch.SwapText(slow.Now(), slow.Facts()).empty());
}

TEST_CASE("straggler watch: people hear who is one, and whether anybody can take its place", "[core]") {
  Slow slow;
  slow.worker(2).leaving = true;

  slow.Report(3, 1);

  const std::vector<Action> actions = slow.TakeActions();
  REQUIRE(actions.size() == 1);
  CHECK_THAT(std::get<Announce>(actions[0]).text,
             Contains("worker-0 on host-0 is a straggler") && Contains("no spare worker can take its place"));
}

}  // namespace
}  // namespace lockstep::chief
