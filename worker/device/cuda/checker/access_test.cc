// Which accesses come after which, by barriers, warps, blocks and clocks, and what a cell makes of many readers.
#include "worker/device/cuda/checker/access.h"

#include <catch2/catch.hpp>

#include "worker/device/cuda/checker/shadow.h"

namespace lockstep::device::cuda::checker {
namespace {

// An access of a kernel that is the third operation of the stream in slot 1.
struct Place {
  uint16_t thread = 0;
  uint32_t time = 1;
  uint32_t barrier = 1;
  uint32_t block = 0;
  uint32_t operation = 3;
  uint8_t slot = 1;
};

class Memory {
 public:
  // Whether nothing speaks against it.
  bool Reads(const Place& place) { return cell_.Read(At(place)) == nullptr; }
  bool Writes(const Place& place) { return cell_.Write(At(place)) == nullptr; }
  void StreamKnows(uint8_t slot, uint32_t operation) { clock_.Set(slot, operation); }

 private:
  Now At(const Place& place) const {
    Now now;
    now.access = {.operation = place.operation,
                  .block = place.block,
                  .time = place.time,
                  .place = 0,
                  .thread = place.thread,
                  .slot = place.slot,
                  .who = Who::kThread};
    now.barrier = place.barrier;
    now.clock = &clock_;
    return now;
  }

  Cell cell_;
  Clock clock_;
};

TEST_CASE("access: a thread follows itself, and others follow it behind a barrier of both", "[cuda]") {
  Memory memory;
  CHECK(memory.Writes({.thread = 5}));
  CHECK(memory.Reads({.thread = 5}));
  CHECK_FALSE(memory.Reads({.thread = 6}));
  CHECK_FALSE(memory.Writes({.thread = 40}));
  CHECK(memory.Reads({.thread = 6, .time = 2}));                 // the warp's barrier
  CHECK_FALSE(memory.Reads({.thread = 40, .time = 2}));          // another warp's
  CHECK(memory.Reads({.thread = 40, .time = 3, .barrier = 3}));  // the block's
  CHECK_FALSE(memory.Reads({.thread = 5, .time = 9, .barrier = 9, .block = 1}));
}

TEST_CASE("access: a write comes behind every reader since the last barrier", "[cuda]") {
  SECTION("lanes of a warp") {
    Memory memory;
    CHECK(memory.Reads({.thread = 1}));
    CHECK(memory.Reads({.thread = 2}));
    CHECK_FALSE(memory.Writes({.thread = 2}));
    CHECK(memory.Writes({.thread = 2, .time = 2}));
  }
  SECTION("one lane reads on") {
    Memory memory;
    CHECK(memory.Reads({.thread = 1}));
    CHECK(memory.Reads({.thread = 2, .time = 2}));
    CHECK_FALSE(memory.Writes({.thread = 1, .time = 2}));
    CHECK(memory.Writes({.thread = 2, .time = 2}));  // behind the first by the warp's barrier
  }
  SECTION("warps of a block") {
    Memory memory;
    CHECK(memory.Reads({.thread = 1}));
    CHECK(memory.Reads({.thread = 33}));
    CHECK_FALSE(memory.Writes({.thread = 33, .time = 2}));
    CHECK(memory.Writes({.thread = 70, .time = 2, .barrier = 2}));
  }
  SECTION("blocks of a launch") {
    Memory memory;
    CHECK(memory.Reads({.thread = 1, .block = 0}));
    CHECK(memory.Reads({.thread = 1, .block = 1}));
    CHECK(memory.Reads({.thread = 1, .block = 1}));
    CHECK_FALSE(memory.Writes({.thread = 1, .time = 9, .barrier = 9, .block = 1}));
    CHECK(memory.Writes({.thread = 1, .operation = 4}) == false);  // another launch that knows of none
    memory.StreamKnows(1, 4);
    CHECK(memory.Writes({.thread = 1, .operation = 4}));
  }
}

TEST_CASE("access: operations of two streams are ordered by what the later one knows", "[cuda]") {
  Memory memory;
  CHECK(memory.Writes({.operation = 3, .slot = 1}));
  CHECK_FALSE(memory.Reads({.operation = 7, .slot = 2}));
  memory.StreamKnows(1, 2);
  CHECK_FALSE(memory.Reads({.operation = 7, .slot = 2}));
  memory.StreamKnows(1, 3);
  CHECK(memory.Reads({.operation = 7, .slot = 2}));
  CHECK(memory.Reads({.operation = 9, .slot = 3}));  // a second reader, beside the first
  CHECK_FALSE(memory.Writes({.operation = 10, .slot = 1}));
  memory.StreamKnows(3, 9);
  CHECK_FALSE(memory.Writes({.operation = 10, .slot = 1}));
  memory.StreamKnows(2, 7);
  CHECK(memory.Writes({.operation = 10, .slot = 1}));
}

TEST_CASE("shadow: cells are as fine as accesses were, and keep what was known before", "[cuda]") {
  constexpr size_t kBytes = 4096;
  Shadow shadow(kBytes);
  const auto visits = [&](size_t offset, size_t bytes) {
    int count = 0;
    shadow.Visit(offset, bytes, [&](size_t, Cell&) { ++count; });
    return count;
  };
  shadow.Visit(0, kBytes, [](size_t, Cell& cell) { cell.Begin({.operation = 1, .who = Who::kThread}); });

  CHECK(visits(0, kBytes) == 4);
  CHECK(visits(1024, 16) == 4);
  CHECK(visits(0, kBytes) == 3 + 256);
  CHECK(visits(1030, 1) == 1);
  CHECK(visits(1024, 16) == 3 + 4);
  CHECK(visits(1023, 2) == 1 + 1);
  int written = 0;
  shadow.Visit(0, kBytes, [&](size_t, Cell& cell) { written += cell.written() ? 1 : 1000; });
  CHECK(written < 1000);
}

}  // namespace
}  // namespace lockstep::device::cuda::checker
