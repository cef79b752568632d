#include "chief/hooks/trace_keeper.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::chief {
namespace {

TracePiece Piece(const std::string& worker, uint32_t index, uint32_t pieces, const std::string& bytes) {
  TracePiece piece;
  piece.set_worker(worker);
  piece.set_index(index);
  piece.set_pieces(pieces);
  piece.set_steps(20);
  piece.set_bytes(bytes);
  return piece;
}

TEST_CASE("trace keeper: pieces of several workers become their files", "[hooks]") {
  TraceKeeper keeper;
  CHECK_FALSE(keeper.Take("slow", 200, Piece("worker-0", 0, 2, "ab")).has_value());
  CHECK_FALSE(keeper.Take("slow", 200, Piece("worker-1", 0, 3, "xy")).has_value());

  const auto trace = keeper.Take("slow", 200, Piece("worker-0", 1, 2, "c"));

  REQUIRE(trace.has_value());
  CHECK(trace->file == "slow-step-200.worker-0.trace.json.gz");
  CHECK(trace->bytes == "abc");
  CHECK(trace->about == "the next 20 steps of worker-0");
  CHECK(keeper.Take("slow", 300, Piece("worker-0", 0, 1, "d"))->bytes == "d");
}

TEST_CASE("trace keeper: a trace that began anew is that of its pieces alone", "[hooks]") {
  TraceKeeper keeper;
  keeper.Take("slow", 200, Piece("w", 0, 2, "old"));
  keeper.Take("slow", 200, Piece("w", 0, 2, "a"));
  CHECK(keeper.Take("slow", 200, Piece("w", 1, 2, "b"))->bytes == "ab");

  // A chief that came in between hears of the end alone.
  CHECK_FALSE(keeper.Take("slow", 200, Piece("w", 1, 2, "b")).has_value());
  keeper.Take("slow", 200, Piece("w", 0, 3, "a"));
  CHECK_FALSE(keeper.Take("slow", 200, Piece("w", 2, 3, "c")).has_value());
}

TEST_CASE("trace keeper: it holds no more than its limits, and makes no path of a name", "[hooks]") {
  TraceKeeper keeper;
  const std::string half(TraceKeeper::kMostBytes / 2 + 1, 'x');
  keeper.Take("slow", 1, Piece("w", 0, 3, half));
  keeper.Take("slow", 1, Piece("w", 1, 3, half));
  CHECK_FALSE(keeper.Take("slow", 1, Piece("w", 2, 3, "")).has_value());

  keeper.Take("slow", 2, Piece("w", 0, 2, "a"));
  for (int64_t step = 10; step < 10 + static_cast<int64_t>(TraceKeeper::kMostUnfinished); ++step) {
    keeper.Take("slow", step, Piece("w", 0, 2, "a"));
  }
  CHECK_FALSE(keeper.Take("slow", 2, Piece("w", 1, 2, "b")).has_value());
  CHECK(keeper.Take("a/b", 3, Piece("../../w", 0, 1, "c"))->file == "a_b-step-3..._.._w.trace.json.gz");
}

}  // namespace
}  // namespace lockstep::chief
