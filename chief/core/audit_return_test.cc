#include "chief/core/audit_return.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kLimit = absl::FromUnixSeconds(1000);
const Incarnation kReturning{1, 1};
const Incarnation kAhead{1, 2};

KeptState At(uint64_t step) { return KeptState{"line", {step, 0}, absl::StrCat("d", step)}; }
bool Everybody(const Incarnation&) { return true; }

AuditReturn::Outcome ToCheckpoint() {
  AuditReturn::Outcome outcome;
  outcome.told.step = 10;
  outcome.trained_for = absl::Seconds(1);
  return outcome;
}

TEST_CASE("audit return: the newest state is asked of all who hold it, and one that has it is enough", "[core]") {
  AuditReturn way;
  way.Begin(ToCheckpoint(),
            {{kReturning, At(32), absl::Seconds(3)}, {kReturning, At(48), absl::Seconds(5)}, {kAhead, At(48), {}}});
  CHECK(way.Newest() == 48u);
  CHECK_FALSE(way.Take().has_value());

  const auto order = way.Next(kLimit, Everybody);

  REQUIRE(order.has_value());
  CHECK(order->state == At(48));
  CHECK(order->holders == std::vector<Incarnation>{kReturning, kAhead});
  CHECK(way.limit() == kLimit);
  CHECK_FALSE(way.Next(kLimit, Everybody).has_value());
  CHECK(way.Answered(kReturning, At(48), true));
  CHECK_FALSE(way.Answered(kReturning, At(48), true));  // repeated
  CHECK_FALSE(way.Answered(kAhead, At(32), false));     // of another state
  CHECK_FALSE(way.Take().has_value());
  CHECK(way.Answered(kAhead, At(48), false));
  const auto outcome = way.Take();
  REQUIRE(outcome.has_value());
  CHECK(outcome->told.step == 48);
  CHECK(outcome->told.from_copy);
  CHECK_FALSE(way.pending());
  CHECK(way.limit() == absl::InfiniteFuture());
}

TEST_CASE("audit return: a state that nobody has is followed by the one before it, and that by the checkpoint",
          "[core]") {
  const int how = GENERATE(0, 1, 2);  // refused, gone, late
  AuditReturn way;
  way.Begin(ToCheckpoint(), {{kReturning, At(32), absl::Seconds(3)}, {kAhead, At(48), absl::Seconds(5)}});
  const auto fail = [&](const Incarnation& holder, uint64_t step) {
    if (how == 0) way.Answered(holder, At(step), false);
    if (how == 1) {
      way.Lost(holder, kLimit - absl::Seconds(10));
      CHECK(way.TakeLate(way.limit() - absl::Milliseconds(1)).empty());
      CHECK(way.TakeLate(kLimit - absl::Seconds(10) + AuditReturn::kComesBack) == std::vector<Incarnation>{holder});
    }
    if (how == 2) CHECK(way.TakeLate(kLimit) == std::vector<Incarnation>{holder});
  };

  REQUIRE(way.Next(kLimit, Everybody)->state == At(48));
  fail(kAhead, 48);
  CHECK_FALSE(way.Take().has_value());
  CHECK(way.Newest() == 32u);
  REQUIRE(way.Next(kLimit, Everybody)->state == At(32));
  const bool second_works = GENERATE(false, true);
  second_works ? void(way.Answered(kReturning, At(32), true)) : fail(kReturning, 32);

  const auto outcome = way.Take();
  REQUIRE(outcome.has_value());
  CHECK(outcome->told.step == (second_works ? 32 : 10));
  CHECK(outcome->told.from_copy == second_works);
  CHECK(outcome->trained_for == absl::Seconds(second_works ? 3 : 1));
}

TEST_CASE("audit return: holders that are gone are not asked, and without offers it is the checkpoint at once",
          "[core]") {
  AuditReturn way;
  way.Begin(ToCheckpoint(), {});
  CHECK(way.Take()->told.step == 10);

  way.Begin(ToCheckpoint(), {{kReturning, At(32), {}}, {kAhead, At(48), {}}});
  const auto order = way.Next(kLimit, [](const Incarnation& id) { return id == kReturning; });

  REQUIRE(order.has_value());
  CHECK(order->state == At(32));
  way.StopTrying();
  CHECK(way.Take()->told.step == 10);
}

TEST_CASE("audit return: who lost its session answers by its Hello", "[core]") {
  AuditReturn way;
  way.Begin(ToCheckpoint(), {{kReturning, At(48), absl::Seconds(5)}});
  way.Next(kLimit, Everybody);
  way.Lost(kReturning, kLimit - absl::Seconds(1));
  CHECK(way.limit() == kLimit);  // never later than before

  way.CameBack(kAhead, Position{48, 0});
  CHECK(way.Waits());
  SECTION("with the copy") {
    way.CameBack(kReturning, Position{48, 0});
    CHECK(way.Take()->told.from_copy);
  }
  SECTION("with another state") {
    way.CameBack(kReturning, Position{64, 0});
    CHECK(way.Take()->told.step == 10);
  }
  SECTION("with none") {
    way.CameBack(kReturning, std::nullopt);
    CHECK(way.Take()->told.step == 10);
  }
}

}  // namespace
}  // namespace lockstep::chief
