#include "chief/core/team_choice.h"

#include <catch2/catch.hpp>
#include <random>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

struct Choice : CoreFixture {
  TeamChoice Facts() {
    return TeamChoice({roster, pairs, history, gives_way ? &stragglers : nullptr, first_unsaved, capacity, now});
  }
  std::vector<std::string> Names(bool with_leavers = false) {
    std::vector<std::string> names;
    for (const Worker* worker : Facts().Choose(with_leavers).members) names.push_back(worker->name());
    return names;
  }

  bool gives_way = false;
  Stragglers stragglers;
  uint64_t first_unsaved = 11;
  size_t capacity = 8;
};

TEST_CASE("team choice: the largest set that reaches each other, in rank order", "[core]") {
  Choice choice;
  for (int index = 0; index < 5; ++index) choice.Add(index);
  choice.Meet({0, 3});
  choice.Meet({1, 2, 4});

  CHECK(choice.Names() == std::vector<std::string>{"worker-1", "worker-2", "worker-4"});
  CHECK(choice.Facts().Choose(false).staying == 3);
}

TEST_CASE("team choice: who is not ready, steps or was dismissed is no candidate", "[core]") {
  Choice choice;
  for (int index = 0; index < 4; ++index) choice.Add(index);
  choice.Meet({0, 1, 2, 3});
  choice.worker(0).stage = Worker::Stage::kPreparing;
  choice.worker(1).busy = Generation{1, 1};
  choice.worker(2).dismissed = true;

  CHECK(choice.Names() == std::vector<std::string>{"worker-3"});
}

TEST_CASE("team choice: a leaver is a member only while others are to take over what it holds", "[core]") {
  Choice choice;
  for (int index = 0; index < 3; ++index) choice.Add(index);
  choice.Meet({0, 1, 2});
  choice.Hold(0, 20);
  choice.worker(0).leaving = choice.worker(1).leaving = true;

  CHECK(choice.Names(/*with_leavers=*/false) == std::vector<std::string>{"worker-2"});
  CHECK(choice.Names(/*with_leavers=*/true) == std::vector<std::string>{"worker-0", "worker-2"});
  CHECK(choice.Facts().Choose(true).staying == 1);
}

TEST_CASE("team choice: what only one holds is not left behind", "[core]") {
  Choice choice;
  for (int index = 0; index < 4; ++index) choice.Add(index);
  choice.Meet({0, 1, 2});
  choice.Meet({2, 3});
  choice.Hold(3, 20);

  SECTION("its holder is in the team where nothing says yet that it cannot be") {
    CHECK(choice.Names() == std::vector<std::string>{"worker-2", "worker-3"});
    CHECK_FALSE(choice.Facts().Choose(false).saved_first.has_value());
  }
  SECTION("it is saved first where the holder is apart from the larger team") {
    choice.pairs.Failed(choice.Id(3), choice.Id(0), choice.now);

    const Team team = choice.Facts().Choose(false);

    CHECK(team.members.size() == 3);
    CHECK(team.saved_first == Position{20, 0});
  }
  SECTION("nothing is to be kept once the storage has it") {
    choice.first_unsaved = 21;
    CHECK(choice.Names() == std::vector<std::string>{"worker-0", "worker-1", "worker-2"});
  }
  SECTION("a state of another lineage is none of the job's") {
    choice.worker(3).held->lineage = "other";
    CHECK(choice.Names() == std::vector<std::string>{"worker-0", "worker-1", "worker-2"});
  }
}

TEST_CASE("team choice: beyond the capacity stragglers are spare", "[core]") {
  Choice choice;
  choice.capacity = 2;
  for (int index = 0; index < 3; ++index) choice.Add(index);
  choice.Meet({0, 1, 2});
  for (const double seconds : {0.0, 30.0}) {
    for (int index = 0; index < 3; ++index) {
      const double pace = index == 0 ? 3 : 1;
      choice.stragglers.Told(choice.now + absl::Seconds(seconds), Generation{2, 1}, 3, choice.Id(index),
                             {seconds, seconds, seconds * pace});
    }
  }
  REQUIRE(choice.stragglers.Straggles(choice.Id(0)));

  CHECK(choice.Names() == std::vector<std::string>{"worker-0", "worker-1"});
  choice.gives_way = true;
  CHECK(choice.Names() == std::vector<std::string>{"worker-1", "worker-2"});
  choice.Hold(0, 20);  // what only a straggler holds goes on with it
  CHECK(choice.Names() == std::vector<std::string>{"worker-0", "worker-1"});
}

TEST_CASE("team choice: who is known not to reach the team counts as present, others may still come", "[core]") {
  Choice choice;
  for (int index = 0; index < 4; ++index) choice.Add(index);
  choice.Meet({0, 1});
  choice.pairs.Failed(choice.Id(2), choice.Id(0), choice.now);

  const Team team = choice.Facts().Choose(false);

  CHECK(team.staying == 2);
  CHECK(team.present == 3);
}

TEST_CASE("team choice: members give way to more workers that reach each other but not them", "[core]") {
  Choice choice;
  for (int index = 0; index < 3; ++index) choice.Add(index);
  choice.worker(0).busy = Generation{2, 1};
  choice.Meet({1, 2});
  const std::set<Incarnation> members = {choice.Id(0)};
  CHECK_FALSE(choice.Facts().LargerTeamWaits(members));  // they may still reach it

  for (int index : {1, 2}) choice.pairs.Failed(choice.Id(index), choice.Id(0), choice.now);

  CHECK(choice.Facts().LargerTeamWaits(members));
  choice.capacity = 1;
  CHECK_FALSE(choice.Facts().LargerTeamWaits(members));
}

TEST_CASE("team choice: whatever is known of whom, the team's invariants hold", "[core]") {
  std::mt19937 random(7);
  const auto chance = [&](uint32_t one_in) { return random() % one_in == 0; };
  for (int round = 0; round < 300; ++round) {
    Choice choice;
    choice.capacity = 1 + random() % 8;
    const int workers = 1 + static_cast<int>(random() % 9);
    for (int index = 0; index < workers; ++index) {
      Worker& worker = choice.Add(index);
      if (chance(6)) worker.stage = Worker::Stage::kPreparing;
      if (chance(6)) worker.leaving = true;
      if (chance(8)) worker.dismissed = true;
      if (chance(8)) worker.busy = Generation{1, 1};
      if (worker.AtRest() && chance(2)) choice.Hold(index, random() % 4 + 9);
      if (chance(10)) choice.pairs.SuspectItself(worker.id(), choice.now);
      for (int other = 0; other < index; ++other) {
        if (!chance(3)) choice.pairs.Succeeded(choice.Id(index), choice.Id(other));
        if (chance(5)) choice.pairs.Failed(choice.Id(index), choice.Id(other), choice.now);
      }
    }
    const Team team = choice.Facts().Choose(chance(2));
    INFO("round " << round);
    REQUIRE(choice.Facts().BrokenInvariant(team).empty());
  }
}

}  // namespace
}  // namespace lockstep::chief
