// Members that cannot form, pairs that cannot talk, names that two processes ask for, and what people hear of it.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

size_t Generations(const ChiefHarness& chief) {
  std::set<Generation> formed;
  for (const Send& send : chief.All<Send>()) {
    if (std::holds_alternative<Form>(send.command)) formed.insert(send.fence.generation);
  }
  return formed.size();
}

size_t TimesSaid(const ChiefHarness& chief, const std::string& part) {
  size_t count = 0;
  for (const Announce& line : chief.All<Announce>()) count += line.text.find(part) == std::string::npos ? 0 : 1;
  return count;
}

// Time passes second by second; members that are asked to meet do so.
void Live(ChiefHarness& chief, int seconds) {
  for (int second = 0; second < seconds && !chief.ended(); ++second) {
    chief.Advance(absl::Seconds(1));
    bool asked = false;
    for (const int index : chief.Members())
      asked = asked || chief.worker(index).requests.count(RequestKind::kForm) != 0;
    if (asked) chief.MeetAtBoundary();
  }
}

// In a generation with both, the second one cannot connect to the first; tests between them fail as well.
void Cut(ChiefHarness& chief, int first, int second) {
  chief.worker(first).unreachable.insert(chief.worker(second).hello.preferred_name);
  chief.worker(second).unreachable.insert(chief.worker(first).hello.preferred_name);
}

void FailWhereCut(ChiefHarness& chief) {
  chief.on_form = [&chief](int index) {
    FakeWorker& w = chief.worker(index);
    for (const Member& member : w.members) {
      if (w.unreachable.count(member.name) == 0) continue;
      chief.Say(index, PeerFailed{w.generation, member.incarnation, true, "not every peer connected in time"});
      return true;
    }
    return false;
  };
}

// ---- what breaks generations

TEST_CASE("members: a worker that cannot listen is held out, the others go on, and it comes back", "[core]") {
  const bool tests_tell = GENERATE(true, false);
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  if (tests_tell) chief.worker(2).unreachable = {"worker-0", "worker-1"};
  chief.on_form = [&chief](int index) {
    FakeWorker& w = chief.worker(index);
    if (index != 2 || w.members.size() < 2) return false;
    chief.Say(2, PeerFailed{w.generation, w.id, true, "cannot listen for peers on '10.0.0.2': bind"});
    return true;
  };
  chief.Forget();

  chief.Kill(1);
  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 1);
  chief.Connect(1);
  Live(chief, 68);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
  CHECK(chief.worker(1).members.size() == 2);
  CHECK(Generations(chief) <= (tests_tell ? 4 : 20));
  CHECK(TimesSaid(chief, "cannot listen") <= (tests_tell ? 1 : 8));

  chief.on_form = nullptr;
  chief.worker(2).unreachable.clear();
  Live(chief, 90);
  CHECK(chief.worker(2).members.size() == 3);
  CHECK_FALSE(chief.ended());
}

TEST_CASE("members: a pair that cannot talk costs one of the two, not the job", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  Cut(chief, 0, 1);
  FailWhereCut(chief);
  chief.Forget();

  chief.Say(1, PeerFailed{chief.worker(1).generation, chief.worker(0).id, false, "rank 0 cannot be reached"});

  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(Generations(chief) == 1);
  CHECK(chief.worker(2).members.size() == 2);
  CHECK(chief.worker(2).position == Position{5, 0});
}

TEST_CASE("members: when nobody is named, every pair of the generation proves itself again", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  Cut(chief, 0, 1);
  chief.on_form = [&chief](int index) {
    FakeWorker& w = chief.worker(index);
    if (index != 1 || w.members.size() < 3) return false;
    chief.Say(1, PeerFailed{w.generation, {}, true, "not every peer connected in time"});
    return true;
  };

  chief.Say(1, PeerFailed{chief.worker(1).generation, {}, false, "reset"});
  Live(chief, 2);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(2).members.size() == 2);
}

TEST_CASE("members: generations that break without a step come ever more slowly, and mend", "[core]") {
  const bool restores = GENERATE(true, false);
  ChiefHarness chief({.workers = restores ? 0u : 3u, .min = 3, .expected = 3});
  if (!restores) chief.StepTo(5);
  chief.on_form = [&chief](int index) {
    FakeWorker& w = chief.worker(index);
    chief.Say(index, PeerFailed{w.generation, {}, true, "connection reset"});
    return true;
  };
  chief.Forget();
  if (restores) {
    for (int i = 0; i < 3; ++i) chief.Connect(i);
  } else {
    chief.Say(1, PeerFailed{chief.worker(1).generation, {}, false, "connection reset"});
  }

  Live(chief, 60);
  CHECK_FALSE(chief.ended());
  CHECK(Generations(chief) >= 5);
  CHECK(Generations(chief) <= 25);

  chief.on_form = nullptr;
  Live(chief, 15);
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 3);
}

TEST_CASE("members: deaths in a row put nothing off", "[core]") {
  ChiefHarness chief({.workers = 6});
  const absl::Time before = chief.now();

  for (int dead = 5; dead >= 1; --dead) {
    const FakeWorker& witness = chief.worker(0);
    const Generation generation = witness.generation;
    chief.worker(dead).mute = true;
    chief.Say(0, PeerFailed{generation, chief.worker(dead).id, false, "lost the connection"});
    chief.Kill(dead);
    REQUIRE(chief.phase() == Phase::kRunning);
    CHECK(chief.worker(0).members.size() == static_cast<size_t>(dead));
  }

  CHECK(chief.now() == before);
}

// ---- one that reaches nobody

TEST_CASE("members: one that came first and reaches nobody does not park the others", "[core]") {
  ChiefHarness chief({.workers = 0, .min = 2, .expected = 3});
  chief.worker(0).unreachable = {"worker-1", "worker-2"};
  chief.worker(1).unreachable = chief.worker(2).unreachable = {"worker-0"};
  for (int i = 0; i < 3; ++i) chief.Connect(i);

  chief.Advance(absl::Seconds(31));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(1).members.size() == 2);
  CHECK(chief.Commands<Form>(0).empty());
}

TEST_CASE("members: one that steps alone and reaches nobody gives its state to more that reach each other", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(7);
  Cut(chief, 0, 1);
  Cut(chief, 0, 2);
  chief.Connect(1);
  Live(chief, 2);
  CHECK(chief.worker(0).members.size() == 1);  // one against one: nothing is gained
  chief.Connect(2);

  Live(chief, 35);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 7);
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(1).members.size() == 2);
  CHECK(chief.worker(1).position == Position{7, 0});
  CHECK(chief.worker(0).generation.IsNone());
}

// ---- names

TEST_CASE("members: a live worker keeps its name and its place, whoever asks for the name", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  chief.worker(5).hello.preferred_name = "worker-0";
  chief.worker(5).hello.host = "host-0";
  chief.Forget();

  chief.Connect(5);
  CHECK(chief.Commands<Welcome>(5).empty());
  chief.Advance(absl::Milliseconds(1500));

  CHECK(chief.worker(5).name == "worker-2");
  CHECK(chief.worker(0).connected);
  CHECK(chief.Commands<Verdict>(0).empty());
  CHECK(chief.Count<CloseSession>() == 0);
  CHECK_THAT(chief.Said(), Contains("another process on host-0 asks for the name worker-0"));
}

TEST_CASE("members: a process that takes the place of a dead one gets its name at once", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  const SessionId old = chief.worker(1).session;
  chief.worker(1).connected = false;  // SIGKILL: its end is not heard yet
  chief.NewProcess(1);
  chief.Connect(1);
  REQUIRE(chief.Commands<Welcome>(1).empty());

  chief.Do(SessionClosed{old, "reset"});

  CHECK(chief.worker(1).name == "worker-1");
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("members: the name of a machine that vanished is free when its silence counts as death", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.worker(1).beating = false;
  const int again = 7;
  chief.worker(again).hello = chief.worker(1).hello;
  chief.Connect(again);

  chief.Advance(absl::Seconds(3));
  CHECK(chief.Commands<Welcome>(again).empty());
  chief.Connect(again);  // it gave up its first session, and asks on another
  chief.Advance(absl::Seconds(3));

  CHECK(chief.worker(again).name == "worker-1");
}

// ---- what people hear

TEST_CASE("members: where nobody said how many, those that come together begin together, soon", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = ChiefHarness::kNotTold});
  chief.Connect(0);
  chief.Advance(absl::Seconds(2));
  chief.Connect(1);
  chief.Advance(absl::Seconds(2));
  CHECK(chief.phase() == Phase::kWaiting);
  CHECK_THAT(chief.View().waiting_for, Contains("2 joined") && Contains("--expected-workers") && !Contains("missing"));

  chief.Advance(absl::Seconds(2));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
}

TEST_CASE("members: who is awaited is told without inventing names", "[core]") {
  ChiefHarness chief({.workers = 0, .min = 3, .expected = 3});
  chief.worker(4).hello.preferred_name = "worker-3";
  chief.Connect(4);

  CHECK_THAT(chief.View().waiting_for, Contains("1/3 joined; missing 2 that never connected"));
}

TEST_CASE("members: a pair that is kept apart is told once, with the flag that mends a loopback address", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.worker(1).unreachable = {"worker-0"};
  chief.NewProcess(2).hello.peer_address = "127.0.0.1:4711";
  chief.Connect(1);
  chief.Connect(2);
  chief.worker(3).unreachable = {"worker-2"};
  chief.Connect(3);

  Live(chief, 30);

  CHECK(TimesSaid(chief, "worker-1 cannot connect to worker-0") == 1);
  CHECK(TimesSaid(chief, "start it with --peer-host ADDRESS") == 1);
}

}  // namespace
}  // namespace lockstep::chief
