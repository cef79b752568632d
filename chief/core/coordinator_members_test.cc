// Members that cannot form, pairs that cannot talk, and what people hear of it.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

size_t Generations(const ChiefHarness& chief) {
  std::set<Generation> formed;
  for (const SendToAll& send : chief.All<SendToAll>()) {
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

TEST_CASE("members: when no member is accused, every pair of the generation is tested again", "[core]") {
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

TEST_CASE("members: a failure that both of a pair report counts once", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  int failing = 2;
  chief.on_form = [&](int index) {
    const FakeWorker& w = chief.worker(index);
    if (w.members.size() < 2 || failing == 0) return false;
    --failing;
    const Member& peer = w.members[0].incarnation == w.id ? w.members[1] : w.members[0];
    chief.Say(index, PeerFailed{w.generation, peer.incarnation, true, "not every peer connected in time"});
    return true;
  };
  chief.Forget();

  chief.Say(1, PeerFailed{chief.worker(1).generation, {}, false, "reset"});

  REQUIRE(failing == 0);
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(Generations(chief) == 2);
  CHECK(chief.LastCommand<Form>(0).members.size() == 2);
}

// ---- pauses

// Generations for which `fails` is true break while they form, and nobody knows why.
void FailGenerations(ChiefHarness& chief, std::function<bool(const FakeWorker&)> fails) {
  chief.on_form = [&chief, fails = std::move(fails)](int index) {
    const FakeWorker& w = chief.worker(index);
    if (!fails(w)) return false;
    chief.Say(index, PeerFailed{w.generation, {}, true, "connection reset"});
    return true;
  };
  chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "connection reset"});
}

TEST_CASE("members: a pause ends when the worker that failed is gone", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  FailGenerations(chief, [](const FakeWorker& w) { return w.members.size() == 3; });
  Live(chief, 20);
  REQUIRE(chief.phase() == Phase::kWaiting);

  chief.Kill(2);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
}

TEST_CASE("members: a pause ends when a worker comes that was not in what failed", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  FailGenerations(chief, [](const FakeWorker& w) { return w.members.size() == 2; });
  Live(chief, 20);
  REQUIRE(chief.phase() == Phase::kWaiting);

  chief.Connect(2);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 3);
}

TEST_CASE("members: a worker that comes and goes does not undo the pauses", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  chief.Forget();
  FailGenerations(chief, [](const FakeWorker&) { return true; });

  for (int life = 0; life < 30; ++life) {
    chief.Connect(2);
    chief.Advance(absl::Milliseconds(500));
    chief.Kill(2);
    chief.Advance(absl::Milliseconds(500));
  }

  CHECK(Generations(chief) >= 6);
  CHECK(Generations(chief) <= 15);
}

TEST_CASE("members: what failed before a boundary was met puts nothing off after it", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  uint64_t last_bad = 6;
  FailGenerations(chief, [&](const FakeWorker& w) { return w.generation.counter <= last_bad; });
  Live(chief, 20);
  REQUIRE(chief.phase() == Phase::kRunning);
  chief.StepTo(9);
  last_bad = chief.View().generation.counter + 1;

  chief.Connect(2);
  chief.MeetAtBoundary();

  CHECK(chief.View().generation.counter == last_bad + 1);
  CHECK(chief.phase() == Phase::kRunning);
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

// ---- more than fit

// Workers of one side of `border` reach each other, and none of the other side.
void CutAt(ChiefHarness& chief, int workers, int border) {
  for (int left = 0; left < border; ++left) {
    for (int right = border; right < workers; ++right) Cut(chief, left, right);
  }
}

TEST_CASE("members: spares on both sides of a cut break no generation", "[core]") {
  ChiefHarness chief({.workers = 0, .max = 2, .expected = 6});
  CutAt(chief, 6, 3);
  for (int i = 0; i < 6; ++i) chief.Connect(i);

  Live(chief, 95);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
  CHECK(Generations(chief) == 1);
}

TEST_CASE("members: a side with more spares does not take the job over", "[core]") {
  ChiefHarness chief({.workers = 0, .max = 2, .expected = 2});
  CutAt(chief, 7, 3);
  for (int i = 0; i < 7; ++i) chief.Connect(i);
  REQUIRE(chief.worker(0).members.size() == 2);
  chief.StepTo(7);
  chief.Forget();

  chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "reset"});

  CHECK(chief.Commands<Form>(0).size() == 1);
  CHECK(chief.worker(0).position == Position{7, 0});
  CHECK(chief.Count<PublishCommit>() == 0);
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
