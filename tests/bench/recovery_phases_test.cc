#include "tests/bench/recovery_phases.h"

#include <catch2/catch.hpp>

namespace lockstep::bench {
namespace {

constexpr Generation kFirst{1, 1};
constexpr Generation kSecond{1, 2};
constexpr Generation kThird{1, 3};

int64_t Ms(double ms) { return static_cast<int64_t>(ms * 1e6); }

TEST_CASE("recovery phases: those of a generation that breaks add up, and a failed forming counts as choosing",
          "[bench]") {
  SessionRecord record;
  record.applied = {{Ms(10), 1, kFirst}, {Ms(20), 2, kFirst}, {Ms(100), 3, kSecond}};
  record.instants = {{Ms(25), "StopComputing"},    {Ms(30), "ComputingStopped"}, {Ms(40), "FormCommunicator"},
                     {Ms(45), "ComputingStopped"}, {Ms(60), "FormCommunicator"}, {Ms(75), "CommunicatorFormed"},
                     {Ms(90), "StateSynced"}};

  const auto recovery = RecoveryOf(record, Ms(22));

  REQUIRE(recovery.has_value());
  CHECK(recovery->phase_ms == std::array<double, 6>{3, 5, 30, 15, 15, 10});
  CHECK(recovery->total_ms == 78);
  CHECK(recovery->stood_ms == 80);
}

TEST_CASE("recovery phases: a step is late by what the steps before it would not have taken", "[bench]") {
  SessionRecord record;
  record.applied = {{Ms(5), 1, kFirst},    {Ms(100), 2, kSecond}, {Ms(110), 3, kSecond},
                    {Ms(125), 4, kSecond}, {Ms(135), 5, kSecond}, {Ms(160), 6, kThird}};

  // 10, 15 and 10 ms; the step of the other generation is none of them.
  const auto recovery = RecoveryOf(record, Ms(137));
  REQUIRE(recovery.has_value());
  CHECK(recovery->usual_ms == 10);
  CHECK(recovery->late_ms == 15);
  CHECK(recovery->steps_lost == 0);
  // One that the old generation still made is not late: the first of the later one is judged.
  const auto earlier = RecoveryOf(record, Ms(127));
  REQUIRE(earlier.has_value());
  CHECK(earlier->late_ms == 160 - 125 - 2 * earlier->usual_ms);

  record.applied.back().step = 4;
  CHECK(RecoveryOf(record, Ms(137))->steps_lost == 2);
  CHECK(RecoveryOf(record, Ms(137))->late_ms == 35);
}

TEST_CASE("recovery phases: a generation that meets at a boundary is detected by its last step", "[bench]") {
  SessionRecord record;
  record.applied = {{Ms(10), 1, kFirst}, {Ms(30), 2, kFirst}, {Ms(100), 3, kSecond}};
  record.instants = {{Ms(50), "FormCommunicator"}, {Ms(60), "CommunicatorFormed"}, {Ms(60), "StateSynced"}};

  const auto recovery = RecoveryOf(record, Ms(15));

  REQUIRE(recovery.has_value());
  CHECK(recovery->phase_ms == std::array<double, 6>{15, 0, 20, 10, 0, 40});
  CHECK(recovery->stood_ms == 70);
}

TEST_CASE("recovery phases: who did not step before the fault, or never again, is no survivor", "[bench]") {
  SessionRecord record;
  record.applied = {{Ms(10), 1, kFirst}, {Ms(30), 2, kFirst}};

  CHECK_FALSE(RecoveryOf(record, Ms(5)).has_value());
  CHECK_FALSE(RecoveryOf(record, Ms(15)).has_value());
  CHECK_FALSE(RecoveryOf(record, Ms(35)).has_value());
  CHECK(LongestStepMs(record, Ms(0), Ms(40)) == 20);
  CHECK(LongestStepMs(record, Ms(31), Ms(40)) == 0);
}

TEST_CASE("recovery phases: a chief is back when the worker has a session again after attempts that failed",
          "[bench]") {
  SessionRecord record;
  record.instants = {{Ms(5), "ChiefConnected"},
                     {Ms(12), "ChiefDisconnected"},
                     {Ms(20), "ChiefDisconnected"},
                     {Ms(40), "ChiefConnected"}};

  const auto back = ChiefReturnOf(record, Ms(10), Ms(50));

  REQUIRE(back.has_value());
  CHECK(back->detect_ms == 2);
  CHECK(back->return_ms == 28);
  CHECK_FALSE(ChiefReturnOf(record, Ms(10), Ms(30)).has_value());
  CHECK_FALSE(ChiefReturnOf(record, Ms(45), Ms(50)).has_value());
}

}  // namespace
}  // namespace lockstep::bench
