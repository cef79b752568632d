#include "chief/core/skipped_saves.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

TEST_CASE("skipped saves: those that were due between two that were taken", "[core]") {
  SkippedSaves saves(10, 0);
  CHECK(saves.Taken(10) == 0);
  CHECK(saves.Taken(20) == 0);
  CHECK(saves.Taken(50) == 2);  // 30 and 40
  CHECK(saves.Taken(75) == 2);  // 60 and 70; 75 itself was asked for
  CHECK(saves.Taken(80) == 0);
  CHECK(saves.Taken(100) == 1);  // 90
  CHECK(saves.count() == 5);
}

TEST_CASE("skipped saves: every member tells of its snapshot, and steps are trained again", "[core]") {
  SkippedSaves saves(10, 0);
  CHECK(saves.Taken(30) == 2);
  CHECK(saves.Taken(30) == 0);
  CHECK(saves.Taken(20) == 0);
  CHECK(saves.count() == 2);
}

TEST_CASE("skipped saves: a job that goes on counts from its checkpoint; by time none is left out", "[core]") {
  SkippedSaves resumed(10, 35);
  CHECK(resumed.Taken(40) == 0);
  SkippedSaves by_time(0, 0);
  CHECK(by_time.Taken(1000) == 0);
}

}  // namespace
}  // namespace lockstep::chief
