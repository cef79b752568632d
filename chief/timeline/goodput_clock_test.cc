#include "chief/timeline/goodput_clock.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'000);
absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

double Sum(const Goodput& goodput) {
  return goodput.stepping() + goodput.stalled() + goodput.forming() + goodput.waiting() + goodput.finishing() +
         goodput.no_chief();
}

TEST_CASE("goodput: steps count up to the newest agreed one, and what came after it until a break is a stall",
          "[goodput]") {
  GoodputClock clock;
  clock.StartFrom(At(0), Goodput());
  clock.EnterPhase(At(1), Phase::kWaiting);
  clock.EnterPhase(At(4), Phase::kForming);
  clock.EnterPhase(At(4.5), Phase::kRunning);
  clock.Agreed(At(10));
  clock.Agreed(At(20));
  CHECK(clock.Totals(At(22)).stepping() == 15.5);
  CHECK(clock.Totals(At(22)).stalled() == 0);

  clock.EnterPhase(At(23), Phase::kBreaking);
  clock.Agreed(At(23.5));  // a late report is no step
  clock.EnterPhase(At(24), Phase::kForming);
  clock.EnterPhase(At(25), Phase::kRunning);
  clock.Agreed(At(26));
  clock.EnterPhase(At(26), Phase::kFinishing);

  const Goodput totals = clock.Totals(At(28));
  CHECK(totals.stepping() == 16.5);
  CHECK(totals.stalled() == 3);
  CHECK(totals.waiting() == 3);
  CHECK(totals.forming() == 3.5);
  CHECK(totals.finishing() == 2);
  CHECK(Sum(totals) == 28);
}

TEST_CASE("goodput: a chief counts on from the one before, and the time between them is without a chief", "[goodput]") {
  JobStats before;
  before.mutable_goodput()->set_stepping(100);
  before.set_written_ms(50'000);
  CHECK(SecondsWithoutChief(before, 62'500) == 12.5);
  CHECK(SecondsWithoutChief(before, 40'000) == 0);  // the clock of another machine
  before.set_ended("SIGTERM");
  before.set_exit_code(75);
  CHECK(SecondsWithoutChief(before, 62'500) == 12.5);
  before.set_exit_code(0);  // people stopped it
  CHECK(SecondsWithoutChief(before, 62'500) == 0);
  CHECK(SecondsWithoutChief(JobStats(), 62'500) == 0);

  GoodputClock clock;
  clock.StartFrom(At(0), before.goodput());
  clock.EnterPhase(At(0), Phase::kRunning);
  clock.Agreed(At(1));
  CHECK(clock.Totals(At(1)).stepping() == 101);
}

TEST_CASE("goodput: the share is of all time", "[goodput]") {
  Goodput goodput;
  CHECK(GoodputShare(goodput) == 0);
  goodput.set_stepping(60);
  goodput.set_no_chief(15);
  goodput.set_stalled(5);
  CHECK(GoodputShare(goodput) == 0.75);
}

}  // namespace
}  // namespace lockstep::chief
