#include "chief/core/departures.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kLeft = absl::FromUnixSeconds(1000);
constexpr Incarnation kFirst{0, 1};
constexpr Incarnation kSecond{0, 2};

TEST_CASE("departures: one that lost its session may return, until its process was seen to end", "[core]") {
  Departures gone;

  gone.Went(kFirst, "worker-0", WorkerChange::kLost, true, kLeft);
  CHECK_FALSE(gone.NobodyMayReturn());
  gone.Exited("worker-0", std::nullopt, kLeft);

  CHECK(gone.NobodyMayReturn());
  CHECK(gone.ExitedAt("worker-0") == kLeft);
}

TEST_CASE("departures: the order in which an end is heard of does not matter", "[core]") {
  Departures gone;

  gone.Exited("worker-0", kFirst, kLeft);  // its session has not ended yet
  gone.Went(kFirst, "worker-0", WorkerChange::kLost, true, kLeft);

  CHECK(gone.NobodyMayReturn());
}

TEST_CASE("departures: a pause of the chief makes no loss older", "[core]") {
  Departures gone;
  gone.Went(kFirst, "worker-0", WorkerChange::kLost, true, kLeft);

  gone.ShiftDeadlines(absl::Seconds(60));

  CHECK(gone.holder_lost() == kLeft + absl::Seconds(60));
  gone.GiveUpBefore(kLeft + absl::Seconds(30));
  CHECK_FALSE(gone.NobodyMayReturn());
}

TEST_CASE("departures: one that comes back, itself or its successor, is not waited for any more", "[core]") {
  const Incarnation comes = GENERATE(kFirst, kSecond);
  Departures gone;
  gone.Went(kFirst, "worker-0", WorkerChange::kLost, true, kLeft);
  gone.Count("worker-0", WorkerChange::kLost, "reset");
  REQUIRE(gone.reasons().at("worker-0") == "reset");

  gone.Came(comes, "worker-0");

  CHECK(gone.NobodyMayReturn());
  CHECK(gone.reasons().empty());
}

TEST_CASE("departures: those that said goodbye, or gave up long ago, are not waited for", "[core]") {
  Departures gone;
  gone.IsTold(kFirst, "worker-0");
  gone.Went(kFirst, "worker-0", WorkerChange::kLost, true, kLeft);
  gone.Went(kSecond, "worker-1", WorkerChange::kLost, true, kLeft);

  gone.SaidGoodbye(kFirst, "worker-0");
  CHECK(gone.AllHeard());
  CHECK_FALSE(gone.NobodyMayReturn());
  gone.GiveUpBefore(kLeft + absl::Seconds(1));

  CHECK(gone.NobodyMayReturn());
}

TEST_CASE("departures: who has to hear of the end", "[core]") {
  Departures gone;
  gone.ReportedError("worker-0");
  gone.MustHear(kFirst, "worker-0");  // its process ends by itself
  CHECK(gone.AllHeard());

  gone.SaidGoodbye(kSecond, "worker-1");
  gone.MustHear(kSecond, "worker-1");  // it left before the end
  CHECK(gone.AllHeard());

  gone.Came(kSecond, "worker-1");
  gone.MustHear(kSecond, "worker-1");
  CHECK_FALSE(gone.AllHeard());
  SECTION("not one whose process ended after its session") {
    gone.Went(kSecond, "worker-1", WorkerChange::kLost, true, kLeft);
    CHECK_FALSE(gone.Exited("worker-1", std::nullopt, kLeft));
  }
  SECTION("not one whose process ended before its session") {
    gone.Exited("worker-1", kSecond, kLeft);
    CHECK_FALSE(gone.AllHeard());  // the session may still bring its goodbye
    gone.Went(kSecond, "worker-1", WorkerChange::kLost, true, kLeft);
  }
  SECTION("not one whose name another process has") { gone.Came(kFirst, "worker-1"); }

  CHECK(gone.AllHeard());
}

TEST_CASE("departures: an error that was reported explains the end of that process, once", "[core]") {
  Departures gone;
  gone.ReportedError("worker-0");

  CHECK(gone.Exited("worker-0", std::nullopt, kLeft));
  CHECK_FALSE(gone.Exited("worker-0", std::nullopt, kLeft));
}

}  // namespace
}  // namespace lockstep::chief
