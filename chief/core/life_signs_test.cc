#include "chief/core/life_signs.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Sign = LifeSigns::Sign;

struct Watched : CoreFixture {
  Watched() { Beat(1, Heartbeat::Phase::kComputing); }
  void Beat(uint64_t progress, Heartbeat::Phase phase) {
    HeartbeatReceived event;
    event.heartbeat.progress = progress;
    event.heartbeat.phase = phase;
    event.doing = "conv2d";
    signs.Beat(one, event, now);
  }
  LifeSigns::Judgement Judge() { return signs.Judge(one, now, absl::Seconds(5)); }

  LifeSigns signs{absl::Seconds(10)};
  Worker& one = Add(0);
};

TEST_CASE("life signs: who is not heard for longer than the limit is silent", "[core]") {
  Watched watched;
  watched.now += absl::Seconds(5);
  CHECK(watched.Judge().sign == Sign::kLives);
  watched.now += absl::Milliseconds(1);
  CHECK(watched.Judge().sign == Sign::kSilent);
}

TEST_CASE("life signs: who computes without progress stands still, who waits does not", "[core]") {
  Watched watched;
  for (int beat = 0; beat < 4; ++beat) {
    watched.now += absl::Seconds(3);
    watched.Beat(1, Heartbeat::Phase::kComputing);
  }

  const LifeSigns::Judgement judgement = watched.Judge();

  CHECK(judgement.sign == Sign::kStandsStill);
  CHECK_THAT(judgement.reason, Contains("for 12s: conv2d"));
  CHECK(watched.Judge().sign == Sign::kLives);  // its next process has twice as long
  watched.Beat(1, Heartbeat::Phase::kWaitingForPeer);
  watched.one.progressed -= absl::Hours(1);
  CHECK(watched.Judge().sign == Sign::kLives);
}

TEST_CASE("life signs: progress of any kind begins the limit anew", "[core]") {
  Watched watched;
  watched.now += absl::Seconds(9);
  watched.Beat(2, Heartbeat::Phase::kComputing);
  watched.now += absl::Seconds(4);
  CHECK(watched.Judge().sign == Sign::kLives);
  watched.signs.Progressed(watched.one, watched.now);
  CHECK(watched.one.progressed == watched.now);
}

TEST_CASE("life signs: a pause that was survived is normal from the next step on, for all", "[core]") {
  Watched watched;
  watched.signs.Judge(watched.one, watched.now, absl::Seconds(5));
  watched.now += absl::Seconds(30);
  watched.Beat(2, Heartbeat::Phase::kComputing);
  watched.signs.Stepped({watched.one.member});

  watched.one.progressed = watched.now - absl::Seconds(60);
  CHECK(watched.Judge().sign == Sign::kLives);
  watched.one.progressed = watched.now - absl::Seconds(61);
  CHECK(watched.Judge().sign == Sign::kStandsStill);
}

}  // namespace
}  // namespace lockstep::chief
