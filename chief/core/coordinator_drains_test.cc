// Workers that people send away: `lockstep drain`.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

DrainDecided Drain(ChiefHarness& chief, std::vector<std::string> targets,
                   absl::Duration within = absl::InfiniteDuration()) {
  chief.Do(DrainRequested{1, std::move(targets), /*undo=*/false, within, "a test"});
  return chief.Last<DrainDecided>();
}

DrainDecided Undo(ChiefHarness& chief, std::vector<std::string> targets) {
  chief.Do(DrainRequested{2, std::move(targets), /*undo=*/true, absl::InfiniteDuration(), "a test"});
  return chief.Last<DrainDecided>();
}

TEST_CASE("coordinator: a drained member goes at a boundary, and the others go on without rollback", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(10);

  const DrainDecided answer = Drain(chief, {"worker-2"});

  CHECK_FALSE(answer.refused);
  CHECK(answer.request == 1);
  CHECK_THAT(answer.lines.at(0), Contains("worker-2 on host-2 leaves at the next step boundary"));
  REQUIRE(answer.drains.size() == 1);
  CHECK(answer.drains[0] == chief::Drain{"worker-2", "host-2"});
  CHECK(chief.worker(2).exit_code == -1);
  CHECK(chief.worker(0).requests.count(RequestKind::kForm) == 1);
  chief.MeetAtBoundary();
  CHECK(chief.worker(2).exit_code == 75);
  CHECK(chief.Members() == std::vector<int>{0, 1});
  CHECK(chief.LastCommand<Form>(0).position == Position{10, 0});
  CHECK(chief.View().preemptions == 1);
  CHECK(chief.View().failures == 0);
  CHECK(chief.View().drained == std::vector<std::string>{"worker-2"});
}

TEST_CASE("coordinator: a drained host loses all its workers, and others keep theirs", "[core]") {
  ChiefHarness chief({.expected = 3});
  for (int i : {0, 1, 2}) chief.worker(i).hello.host = i == 0 ? "a" : "b";
  for (int i : {0, 1, 2}) chief.Connect(i);
  chief.StepTo(10);

  Drain(chief, {"b"});
  chief.MeetAtBoundary();

  CHECK(chief.Members() == std::vector<int>{0});
  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.worker(2).exit_code == 75);
}

TEST_CASE("coordinator: a drained worker outside the generation goes at once, and nobody meets for it", "[core]") {
  ChiefHarness chief({.workers = 2, .logical_shards = 1});
  REQUIRE(chief.Members() == std::vector<int>{0});
  chief.StepTo(10);

  Drain(chief, {"worker-1"});

  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.worker(0).requests.empty());
}

TEST_CASE("coordinator: a name that nobody has is refused, with those that there are", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);

  const DrainDecided answer = Drain(chief, {"worker-1", "worker-7"});

  CHECK(answer.refused);
  CHECK_THAT(answer.lines.at(0), Contains("'worker-7'") && Contains("worker-0 on host-0, worker-1 on host-1"));
  CHECK(chief.View().drained.empty());
  CHECK(chief.worker(0).requests.empty());
  CHECK(Undo(chief, {"worker-9"}).refused);
  CHECK_THAT(chief.Last<DrainDecided>().lines.at(0), Contains("nothing is drained"));
}

TEST_CASE("coordinator: a worker that is away for a moment can be drained", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  chief.Kill(1);

  const bool by_host = GENERATE(false, true);
  const DrainDecided answer = Drain(chief, {by_host ? "host-1" : "worker-1"});

  CHECK_FALSE(answer.refused);
  CHECK_THAT(answer.lines.at(0), Contains("those that come are turned away"));
  chief.Connect(1);
  CHECK(chief.worker(1).exit_code == 75);
}

TEST_CASE("coordinator: successors of a drained worker are turned away until the drain is lifted", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  Drain(chief, {"worker-1"});
  chief.MeetAtBoundary();

  for (int i = 0; i < 3; ++i) {
    chief.NewProcess(1);
    chief.Connect(1);
    CHECK(chief.LastCommand<Refused>(1).exit_code == 75);
    CHECK_THAT(chief.LastCommand<Refused>(1).message, Contains("lockstep drain --undo worker-1"));
  }
  CHECK(chief.View().failures == 0);
  const std::string said = chief.Said();
  const size_t first = said.find("is turned away");
  CHECK(first != std::string::npos);
  CHECK(said.find("is turned away", first + 1) == std::string::npos);

  CHECK_FALSE(Undo(chief, {"worker-1"}).refused);
  CHECK(chief.Last<DrainDecided>().drains.empty());
  chief.NewProcess(1);
  chief.Connect(1);
  chief.MeetAtBoundary();
  CHECK(chief.Members() == std::vector<int>{0, 1});
}

TEST_CASE("coordinator: a process without a name does not come in under a drained one", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  Drain(chief, {"worker-1"});
  chief.MeetAtBoundary();

  SECTION("from the drained worker's host: it is its successor") {
    chief.NewProcess(1).hello.preferred_name = "";
    chief.Connect(1);
    CHECK(chief.worker(1).exit_code == 75);
    CHECK_THAT(chief.LastCommand<Refused>(1).message, Contains("--name"));
  }
  SECTION("from another host: it gets another name") {
    chief.NewProcess(5).hello.preferred_name = "";
    chief.Connect(5);
    CHECK(chief.worker(5).exit_code == -1);
    CHECK(chief.worker(5).name == "worker-2");
  }
  SECTION("with another name, from the drained worker's host") {
    chief.NewProcess(5).hello.host = "host-1";
    chief.Connect(5);
    CHECK(chief.worker(5).exit_code == -1);
  }
}

TEST_CASE("coordinator: a drain that is lifted before its worker went changes nothing", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  Drain(chief, {"worker-1"});

  Undo(chief, {"worker-1"});
  chief.MeetAtBoundary();

  CHECK(chief.Members() == std::vector<int>{0, 1});
  CHECK(chief.LastCommand<Form>(1).position == Position{10, 0});
  // It was asked itself as well: that is not lifted.
  Drain(chief, {"worker-1"});
  chief.worker(1).leaving = true;
  chief.Say(1, LeaveIntent{absl::Seconds(25)});
  Undo(chief, {"worker-1"});
  chief.MeetAtBoundary();
  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.Commands<Dismiss>(1).size() == 1);
}

TEST_CASE("coordinator: when all are drained the state is saved first, and the job goes on from there", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  chief.storing = false;

  const DrainDecided answer = Drain(chief, {"worker-0", "worker-1"});

  CHECK_THAT(answer.lines.back(), Contains("nobody stays") && Contains("saved before the last one goes"));
  chief.MeetAtBoundary();
  REQUIRE(chief.Last<StoreManifest>().snapshot.step == 10);
  CHECK(chief.worker(0).exit_code == -1);
  chief.storing = true;
  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-10"});
  CHECK(chief.worker(0).exit_code == 75);
  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.View().published_step == 10);
  CHECK_THAT(chief.View().waiting_for, Contains("drained: worker-0, worker-1"));

  Undo(chief, {"worker-0"});
  chief.NewProcess(0);
  chief.Connect(0);
  chief.Advance(absl::Seconds(31));
  CHECK(chief.LastCommand<Form>(0).restore->step == 10);
}

TEST_CASE("coordinator: fewer workers than the job needs stand, and end with 75 when nobody comes", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(10);

  const DrainDecided answer = Drain(chief, {"worker-1"});

  CHECK_THAT(answer.lines.back(), Contains("only 1 of at least 2 workers stay") && Contains("10m"));
  chief.MeetAtBoundary();
  CHECK(chief.worker(1).exit_code == 75);
  chief.Advance(absl::Minutes(11));
  CHECK(chief.View().published_step == 10);
  CHECK(chief.Last<Exit>().code == 75);
}

TEST_CASE("coordinator: the next chief keeps to the drains", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1", .drains = {{"worker-1", "host-1"}}});
  std::vector<Member> members;
  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    members.push_back(Member{w.id, w.hello.preferred_name, w.hello.peer_address});
    w.has_state = true;
    w.lineage = "lineage-1";
    w.position = Position{30, 0};
    w.generation = Generation{1, 4};
    w.term = 1;
  }
  for (int i : {0, 1}) chief.worker(i).members = members;

  SECTION("a member that still steps is adopted, and goes at a boundary") {
    chief.Connect(0);
    chief.Connect(1);
    CHECK(chief.phase() == Phase::kRunning);
    chief.MeetAtBoundary();
    CHECK(chief.worker(1).exit_code == 75);
    CHECK(chief.LastCommand<Form>(0).position == Position{30, 0});
  }
  SECTION("its successor is turned away") {
    chief.NewProcess(1);
    chief.Connect(1);
    CHECK(chief.worker(1).exit_code == 75);
  }
  SECTION("one that stands still with the newest state goes when that is saved") {
    chief.worker(1).generation = Generation();
    chief.storing = false;
    chief.Connect(1);
    chief.Advance(absl::Seconds(7));
    CHECK(chief.worker(1).exit_code == -1);
    REQUIRE(chief.Last<StoreManifest>().snapshot.step == 30);
    chief.storing = true;
    chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-30"});
    CHECK(chief.worker(1).exit_code == 75);
  }
}

TEST_CASE("coordinator: a drained worker that lost its session goes when it is back", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  chief.worker(1).mute = true;  // what it is told does not reach it
  Drain(chief, {"worker-1"});
  chief.Reset(1);
  chief.worker(1).mute = false;

  chief.Connect(1);
  chief.Advance(absl::Seconds(3));

  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.LastCommand<Form>(0).position == Position{10, 0});
}

// ---- by a time

TEST_CASE("coordinator: a drained member whose time is over goes in the middle of a step", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);

  Drain(chief, {"worker-1"}, absl::Seconds(20));

  chief.Advance(absl::Seconds(19));
  CHECK(chief.worker(1).exit_code == -1);
  chief.Advance(absl::Seconds(2));
  CHECK(chief.worker(1).exit_code == 75);
  CHECK(chief.Members() == std::vector<int>{0});
  CHECK(chief.LastCommand<Form>(0).position == Position{10, 0});
  CHECK(chief.View().failures == 0);
}

TEST_CASE("coordinator: the last copy stays beyond its time, which is said once", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(10);
  chief.storing = false;

  Drain(chief, {"worker-0"}, absl::Seconds(20));
  chief.MeetAtBoundary();
  REQUIRE(chief.Last<StoreManifest>().snapshot.step == 10);
  chief.Advance(absl::Seconds(60));

  CHECK(chief.worker(0).exit_code == -1);
  const std::string said = chief.Said();
  const size_t first = said.find("was to be gone by now, which is impossible: nobody who stays holds step 10");
  CHECK(first != std::string::npos);
  CHECK(said.find("was to be gone", first + 1) == std::string::npos);
  chief.storing = true;
  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, "digest-of-10"});
  CHECK(chief.worker(0).exit_code == 75);
}

TEST_CASE("coordinator: members that are all drained and do not meet in time stay", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);

  Drain(chief, {"worker-0", "worker-1"}, absl::Seconds(20));
  chief.Advance(absl::Seconds(30));

  CHECK(chief.Members() == std::vector<int>{0, 1});
  CHECK_THAT(chief.Said(), Contains("worker-0") && Contains("which is impossible"));
  chief.MeetAtBoundary();
  CHECK(chief.View().published_step == 10);
  CHECK(chief.worker(0).exit_code == 75);
}

TEST_CASE("coordinator: a pause of the chief does not move the time by which a drained worker is to be gone",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(10);
  Drain(chief, {"worker-1"}, absl::Seconds(20));

  chief.Pause(absl::Seconds(21));
  chief.Do(Tick{});

  CHECK(chief.worker(1).exit_code == 75);
}

TEST_CASE("coordinator: a job that is done drains nobody", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 20, .logical_shards = 1});
  chief.Reset(1);  // it is waited for
  chief.StepTo(20);
  REQUIRE(chief.phase() == Phase::kDone);

  CHECK(Drain(chief, {"worker-1"}).refused);
}

}  // namespace
}  // namespace lockstep::chief
