#include "chief/core/drain_desk.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

struct Desk : CoreFixture {
  Desk() {
    for (int index = 0; index < 2; ++index) {
      Add(index);
      desk.Came(Now(), worker(index));
    }
    recovered.checkpoint = SnapshotId{"lineage", 10, "ten"};
    life.Begin(now, term, policy);
  }
  DrainDecided Ask(const std::string& target, bool undo = false, absl::Duration within = absl::InfiniteDuration()) {
    return desk.Decide(Now(), DrainRequested{7, {target}, undo, within, "ops"}, false);
  }
  void EndLate() { desk.EndLate(Now(), life, CheckpointTracker(recovered)); }

  RecoveredState recovered;
  GenerationLife life;
  DrainDesk desk{{}};
};

TEST_CASE("drain desk: whoever a drain names leaves, and stays when it is lifted", "[core]") {
  Desk test;

  const DrainDecided decided = test.Ask("host-1");

  CHECK_FALSE(decided.refused);
  CHECK(decided.request == 7);
  CHECK(decided.drains.size() == 1);
  CHECK(test.worker(1).leaving);
  CHECK(test.worker(1).drained);
  CHECK_FALSE(test.worker(0).leaving);
  test.Ask("host-1", /*undo=*/true);
  CHECK_FALSE(test.worker(1).leaving);
  CHECK(test.desk.drains().empty());
}

TEST_CASE("drain desk: a drain is lifted once more, where the storage refused the first time", "[core]") {
  Desk test;
  test.Ask("host-1");
  test.Ask("host-1", /*undo=*/true);

  const DrainDecided again = test.Ask("host-1", /*undo=*/true);

  CHECK_FALSE(again.refused);  // so that it is stored
  CHECK(again.drains.empty());
  CHECK_THAT(again.lines.at(0), Contains("is not drained"));
}

TEST_CASE("drain desk: who was asked to leave itself, or was dismissed, goes though the drain is lifted", "[core]") {
  Desk test;
  test.worker(0).leaving = true;
  test.Ask("worker-0");
  test.Ask("worker-1");
  test.desk.Dismiss(test.Now(), test.worker(1), "done");

  test.Ask("worker-0", true);
  test.Ask("worker-1", true);

  CHECK(test.worker(0).leaving);
  CHECK(test.worker(1).leaving);
}

TEST_CASE("drain desk: what cannot be met is refused and changes nothing", "[core]") {
  Desk test;
  CHECK_THAT(test.Ask("host-9").lines.at(0), Contains("no worker and no host 'host-9'") && Contains("worker-0"));
  CHECK(test.Ask("host-9", true).refused);
  CHECK(test.desk.Decide(test.Now(), DrainRequested{7, {"host-1"}, false, {}, "ops"}, true).refused);
  CHECK(test.desk.drains().empty());
}

TEST_CASE("drain desk: a process that holds nothing is turned away, one that holds a state is let in", "[core]") {
  Desk test;
  test.Ask("worker-1");
  test.TakeActions();
  Hello hello;
  hello.preferred_name = "worker-1";
  hello.host = "host-1";

  CHECK(test.desk.WhyTurnedAway(test.Now(), hello).has_value());
  CHECK(test.desk.WhyTurnedAway(test.Now(), hello).has_value());
  CHECK(test.TakeActions().size() == 1);  // said once
  hello.has_state = true;
  CHECK_FALSE(test.desk.WhyTurnedAway(test.Now(), hello).has_value());
  hello = Hello();
  hello.host = "host-0";
  CHECK_FALSE(test.desk.WhyTurnedAway(test.Now(), hello).has_value());
}

TEST_CASE("drain desk: people hear once that the last copy cannot be gone in time", "[core]") {
  Desk test;
  test.Hold(1, 20);
  test.Ask("worker-1", false, absl::Seconds(30));
  test.TakeActions();

  test.EndLate();
  CHECK(test.TakeActions().empty());
  test.now += absl::Seconds(30);
  test.EndLate();
  test.EndLate();

  const std::vector<Action> said = test.TakeActions();
  REQUIRE(said.size() == 1);
  CHECK_THAT(std::get<Announce>(said[0]).text, Contains("what others hold") || Contains("holds step 20"));
  CHECK_FALSE(test.worker(1).dismissed);
}

TEST_CASE("drain desk: who is late goes in the middle of a step where others step on", "[core]") {
  Desk test;
  test.life.AdvanceAdopting(test.TickAfter(absl::Minutes(1)), "lineage");
  test.life.AdvanceBreaking(test.Now(), 0);
  lockstep::Form form;
  test.life.SendForm(test.Now(), form, test.All(), 0);
  for (const Worker* worker : test.All()) test.life.Formed(*worker, Position());
  REQUIRE(test.life.AdvanceForming(test.Now()));
  test.Ask("worker-1", false, absl::ZeroDuration());

  test.EndLate();

  CHECK(test.worker(1).dismissed);
  CHECK(test.TakeCommands<Shutdown>().size() == 1);
}

}  // namespace
}  // namespace lockstep::chief
