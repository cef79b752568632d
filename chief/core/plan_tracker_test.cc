#include "chief/core/plan_tracker.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kAsked = absl::FromUnixSeconds(1000);
constexpr Incarnation kMaker{0, 1};

TEST_CASE("plan tracker: a plan is known once it is stored, with the data it was made with", "[core]") {
  PlanTracker plan("", "");

  const StorePlan store = plan.Accept(kMaker, "worker-0", PlanMade{"hash", "bytes", "data"});
  CHECK(store.plan == "bytes");
  CHECK_FALSE(plan.known());
  plan.Stored(PlanStored{"of an earlier attempt"}, kAsked);
  CHECK_FALSE(plan.known());
  plan.Stored(PlanStored{"hash"}, kAsked);

  CHECK(plan.hash() == "hash");
  CHECK_FALSE(plan.IsBeingStored());
  CHECK(plan.IsMadeBy(kMaker));
  CHECK(plan.AcceptData("data"));
  CHECK_FALSE(plan.AcceptData("other data"));
}

TEST_CASE("plan tracker: a storage that refuses is tried again, one attempt at a time", "[core]") {
  PlanTracker plan("", "");
  plan.Accept(kMaker, "worker-0", PlanMade{"hash", "bytes", "data"});

  CHECK(plan.Refused(kAsked, "full"));
  CHECK_FALSE(plan.RetryDue(kAsked).has_value());
  const absl::Time later = kAsked + absl::Seconds(2);
  REQUIRE(plan.RetryDue(later).has_value());
  CHECK_FALSE(plan.RetryDue(later + absl::Hours(1)).has_value());  // its answer is not here
  CHECK(plan.TroubleText(later) == "full (refused for 2s)");
  plan.Stored(PlanStored{"hash"}, later);

  CHECK(plan.known());
  CHECK(plan.TroubleText(later).empty());
}

TEST_CASE("plan tracker: a plan that nobody can run makes room for another, and for other data", "[core]") {
  PlanTracker plan("hash", "data");
  REQUIRE(plan.known());

  plan.Discard();

  CHECK_FALSE(plan.known());
  CHECK(plan.AcceptData("other data"));
}

TEST_CASE("plan tracker: names that could not be kept in a line, and plans that are too large, are refused", "[core]") {
  CHECK(PlanTracker::WhatIsWrong(PlanMade{"hash", "bytes", "data"}).empty());

  CHECK_FALSE(PlanTracker::WhatIsWrong(PlanMade{"", "bytes", "data"}).empty());
  CHECK_THAT(PlanTracker::WhatIsWrong(PlanMade{"ha\nsh", "bytes", "data"}), Catch::Contains("'ha\\nsh'"));
  CHECK_FALSE(PlanTracker::WhatIsWrong(PlanMade{"hash", "bytes", std::string(200, 'd')}).empty());
  CHECK_FALSE(PlanTracker::WhatIsWrong(PlanMade{"hash", std::string(kMaxPlanBytes + 1, 'b'), "data"}).empty());
}

}  // namespace
}  // namespace lockstep::chief
