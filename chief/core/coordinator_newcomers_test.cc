// When a newcomer ends a generation that steps, so that it joins: at once, together with others, or not so soon again.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

bool Meets(ChiefHarness& chief) { return chief.worker(0).requests.count(RequestKind::kForm) != 0; }

// It is a worker, but not ready: it answers nothing.
void ConnectUnready(ChiefHarness& chief, int index) {
  chief.worker(index).mute = true;
  chief.Connect(index);
}
void GetReady(ChiefHarness& chief, int index) {
  FakeWorker& w = chief.worker(index);
  w.mute = false;
  w.ready.plan_hash = chief.config().recovered.plan_hash.empty() ? "plan-1" : chief.config().recovered.plan_hash;
  chief.Say(index, w.ready);
}

TEST_CASE("coordinator: a newcomer alone is a boundary at once", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  const absl::Time before = chief.now();

  chief.Connect(2);

  CHECK(Meets(chief));
  CHECK(chief.now() == before);
  chief.MeetAtBoundary();
  CHECK(chief.Members() == std::vector<int>{0, 1, 2});
}

TEST_CASE("coordinator: newcomers that get ready within a moment join at one boundary", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  ConnectUnready(chief, 2);
  ConnectUnready(chief, 3);
  ConnectUnready(chief, 4);

  GetReady(chief, 2);
  CHECK_FALSE(Meets(chief));
  chief.Advance(absl::Milliseconds(500));
  GetReady(chief, 3);
  CHECK_FALSE(Meets(chief));
  GetReady(chief, 4);

  CHECK(Meets(chief));
  chief.MeetAtBoundary();
  CHECK(chief.Members() == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(chief.View().generation.counter == 2);
}

TEST_CASE("coordinator: newcomers wait no longer than a moment for one that takes its time", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  ConnectUnready(chief, 3);
  chief.Connect(2);
  chief.Advance(absl::Milliseconds(500));
  CHECK_FALSE(Meets(chief));

  chief.Advance(JoinBackoff::kTogether - absl::Milliseconds(500));

  CHECK(Meets(chief));
}

TEST_CASE("coordinator: a worker in a crash loop does not form everybody anew each time", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 100000});
  uint64_t step = 5;
  chief.StepTo(step);
  // For half an hour: it joins as soon as it may, makes a step and dies.
  int joins = 0;
  absl::Duration longest = absl::ZeroDuration();
  for (absl::Duration passed, waited; passed < absl::Minutes(30); passed += absl::Seconds(1)) {
    if (!chief.worker(2).connected) chief.Connect(2);
    chief.Advance(absl::Seconds(1));
    waited += absl::Seconds(1);
    chief.StepTo(++step);
    if (!Meets(chief)) continue;
    chief.MeetAtBoundary();
    longest = std::max(longest, std::exchange(waited, absl::ZeroDuration()));
    ++joins;
    chief.StepTo(++step);
    chief.Kill(2);
  }

  CHECK(joins >= 10);
  CHECK(joins <= 16);
  CHECK(longest >= absl::Minutes(5));
  CHECK(longest <= absl::Minutes(5) + absl::Seconds(2));
  CHECK_THAT(chief.Said(), Contains("worker-2 was lost 4 times, each within 20 steps of its joining"));

  // Another newcomer waits for nothing, and takes it along.
  chief.Connect(2);
  REQUIRE_FALSE(Meets(chief));
  chief.Connect(3);
  REQUIRE(Meets(chief));
  chief.MeetAtBoundary();
  CHECK(chief.Members() == std::vector<int>{0, 1, 2, 3});

  // Once it is of use, its next loss is a first one.
  chief.StepTo(step + 100);
  chief.Kill(2);
  chief.Connect(2);
  CHECK(Meets(chief));
}

TEST_CASE("coordinator: below the minimum nobody waits for a worker that comes and goes", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  for (int i = 0; i < 5; ++i) {
    chief.Kill(1);
    REQUIRE(chief.phase() == Phase::kWaiting);
    chief.Connect(1);
    CHECK(chief.phase() == Phase::kRunning);
  }
}

TEST_CASE("coordinator: workers that the chief lost by its own absence wait for nothing", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(1);
  for (int i = 0; i < 6; ++i) {
    chief.Pause(absl::Seconds(30));
    chief.Do(Tick{});
    for (int w = 0; w < 3; ++w) chief.Reset(w);
    for (int w = 0; w < 3; ++w) chief.Connect(w);
    REQUIRE(chief.phase() == Phase::kRunning);
  }

  CHECK_THAT(chief.Said(), !Contains("steps of its joining"));
}

}  // namespace
}  // namespace lockstep::chief
