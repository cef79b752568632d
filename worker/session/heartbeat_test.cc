#include "worker/session/heartbeat.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

using Phase = Heartbeat::Phase;

TEST_CASE("heartbeat: who waits for a peer says so instead of standing still", "[session][rule6]") {
  const LifeSigns waits{.progress = 7, .waits_for_peer = true};
  CHECK(PhaseOfBeat(Phase::kComputing, waits) == Phase::kWaitingForPeer);
  CHECK(PhaseOfBeat(Phase::kForming, waits) == Phase::kWaitingForPeer);

  CHECK(PhaseOfBeat(Phase::kComputing, {}) == Phase::kComputing);
  CHECK(PhaseOfBeat(Phase::kForming, {}) == Phase::kForming);
  for (const Phase phase : {Phase::kPreparing, Phase::kWaitingForChief, Phase::kIdle}) {
    CHECK(PhaseOfBeat(phase, waits) == phase);
  }
}

}  // namespace
}  // namespace lockstep::worker
