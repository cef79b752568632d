#include "chief/core/join_backoff.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);
const JoinBackoff::WorkerKey kWho{"host", "worker-1"};
const JoinBackoff::WorkerKey kOther{"host", "worker-2"};

TEST_CASE("joins: a worker that is lost soon after it joined, again and again, waits longer each time", "[core]") {
  JoinBackoff joins;
  std::vector<absl::Duration> pauses;
  for (uint64_t i = 0; i < 12; ++i) {
    joins.Joined(kWho, 100 + i);
    pauses.push_back(joins.Lost(kWho, 100 + i + JoinBackoff::kSteps - 1, kStart));
  }

  CHECK(pauses[0] == absl::ZeroDuration());
  CHECK(pauses[1] == absl::Seconds(1));
  CHECK(pauses[2] == absl::Seconds(2));
  CHECK(pauses[3] == absl::Seconds(4));
  CHECK(pauses[11] == JoinBackoff::kLongest);
  CHECK(joins.Losses(kWho) == 12);
  CHECK_FALSE(joins.MayAsk(kWho, kStart + absl::Seconds(299)));
  CHECK(joins.NextDeadline(kStart) == kStart + absl::Minutes(5));
  CHECK(joins.MayAsk(kWho, kStart + absl::Minutes(5)));
  CHECK(joins.MayAsk(kOther, kStart));
  CHECK(joins.MayAsk({"another host", "worker-1"}, kStart));
}

TEST_CASE("joins: who was a member for twenty steps begins anew", "[core]") {
  JoinBackoff joins;
  for (int i = 0; i < 3; ++i) {
    joins.Joined(kWho, 100);
    joins.Lost(kWho, 101, kStart);
  }
  joins.Joined(kWho, 200);

  CHECK(joins.Lost(kWho, 220, kStart) == absl::ZeroDuration());

  CHECK(joins.Losses(kWho) == 0);
  CHECK(joins.MayAsk(kWho, kStart));
}

TEST_CASE("joins: the loss of a worker that was no member counts nothing", "[core]") {
  JoinBackoff joins;
  for (int i = 0; i < 10; ++i) CHECK(joins.Lost(kWho, 5, kStart) == absl::ZeroDuration());

  CHECK(joins.MayAsk(kWho, kStart));
}

TEST_CASE("joins: a newcomer alone asks at once, the first of several waits a moment for the others", "[core]") {
  JoinBackoff joins;

  CHECK_FALSE(joins.IsTime(false, true, kStart));
  CHECK(joins.IsTime(true, false, kStart));
  CHECK_FALSE(joins.IsTime(false, false, kStart));

  CHECK_FALSE(joins.IsTime(true, true, kStart));
  CHECK(joins.NextDeadline(kStart) == kStart + JoinBackoff::kTogether);
  CHECK_FALSE(joins.IsTime(true, true, kStart + absl::Milliseconds(999)));
  CHECK(joins.IsTime(true, true, kStart + absl::Seconds(1)));   // not for ever
  CHECK(joins.IsTime(true, false, kStart + absl::Seconds(1)));  // all are there
}

TEST_CASE("joins: a pause of the chief moves what it waits for", "[core]") {
  JoinBackoff joins;
  for (int i = 0; i < 2; ++i) {
    joins.Joined(kWho, 0);
    joins.Lost(kWho, 0, kStart);
  }
  joins.IsTime(true, true, kStart);

  joins.ShiftDeadlines(absl::Seconds(30));

  CHECK_FALSE(joins.MayAsk(kWho, kStart + absl::Seconds(30)));
  CHECK_FALSE(joins.IsTime(true, true, kStart + absl::Seconds(30)));
  CHECK(joins.MayAsk(kWho, kStart + absl::Seconds(31)));
}

}  // namespace
}  // namespace lockstep::chief
