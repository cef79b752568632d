#include "worker/collectives/sockets/early_frames.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

FrameHead Piece(uint64_t sequence, uint32_t bytes) {
  return {.kind = FrameKind::kReduce, .bytes = bytes, .sequence = sequence, .offset = 0};
}

TEST_CASE("early frames: only what came whole waits for its call", "[sockets]") {
  EarlyFrames frames(100);
  REQUIRE(frames.PlaceFor(Piece(3, 10)).ok());
  CHECK(frames.Take(3).empty());

  frames.Keep(frames.Finish().value());
  CHECK_FALSE(frames.Finish().has_value());
  REQUIRE(frames.PlaceFor(Piece(3, 20)).ok());
  frames.DropUnfinished();
  CHECK_FALSE(frames.Finish().has_value());

  const auto taken = frames.Take(3);
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].bytes.size() == 10);
  CHECK(frames.Take(3).empty());
}

TEST_CASE("early frames: a peer is held to its limit, and what was taken or given up does not count", "[sockets]") {
  EarlyFrames frames(100);
  for (int i = 0; i < 5; ++i) CHECK(frames.PlaceFor(Piece(1, 100)).ok());  // each gives up the one before
  frames.Keep(frames.Finish().value());
  CHECK_FALSE(frames.PlaceFor(Piece(2, 1)).ok());

  CHECK(frames.Take(1).size() == 1);
  CHECK(frames.PlaceFor(Piece(2, 100)).ok());
  CHECK_FALSE(frames.PlaceFor(Piece(2, 0)).ok());
}

}  // namespace
}  // namespace lockstep::worker
