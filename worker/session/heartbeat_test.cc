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

TEST_CASE("heartbeat: only answers tell how far a chief is", "[session]") {
  AnswerLimit limit(absl::Seconds(1), absl::Seconds(8));
  Learn(limit, grpc::StatusCode::DEADLINE_EXCEEDED, absl::Seconds(1));
  Learn(limit, grpc::StatusCode::DEADLINE_EXCEEDED, absl::Seconds(2));
  CHECK(limit.limit() == absl::Seconds(4));

  // Refused at once: nobody listens there for now.
  Learn(limit, grpc::StatusCode::UNAVAILABLE, absl::Milliseconds(1));
  CHECK(limit.limit() == absl::Seconds(4));

  Learn(limit, grpc::StatusCode::OK, absl::Milliseconds(1));
  CHECK(limit.limit() == absl::Seconds(2));
}

}  // namespace
}  // namespace lockstep::worker
