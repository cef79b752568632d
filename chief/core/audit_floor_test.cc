#include "chief/core/audit_floor.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

constexpr Incarnation kOne{0, 1}, kTwo{0, 2}, kThree{0, 3};
const absl::Time kEpoch = absl::UnixEpoch();
constexpr absl::Duration kTimeout = absl::Seconds(600), kMargin = AuditFloor::kMargin, kOneSecond = absl::Seconds(1);

struct Floor : AuditFloor {
  Floor() : AuditFloor(40) {}  // nothing is known to be out of reach before Begin
};

TEST_CASE("audit floor: whom the chief before had lost is not known for a while", "[core][rule22]") {
  Floor floor;
  CHECK(floor.step() == AuditFloor::kNone);
  floor.Begin(kEpoch);
  CHECK(floor.step() == 40);

  floor.Passed({kOne, kTwo});
  floor.GiveUp(kEpoch + kTimeout + kMargin, kTimeout);
  CHECK(floor.step() == 40);
  floor.ShiftDeadlines(absl::Seconds(5));
  floor.GiveUp(kEpoch + kTimeout + kMargin + 5 * kOneSecond, kTimeout);
  CHECK(floor.step() == 40);
  floor.GiveUp(kEpoch + kTimeout + kMargin + 6 * kOneSecond, kTimeout);
  CHECK(floor.step() == AuditFloor::kNone);
}

TEST_CASE("audit floor: who is left behind holds it at what all had compared, until it is heard or gone",
          "[core][rule22]") {
  Floor floor;
  floor.Forms({}, {kOne, kTwo, kThree}, 0, kEpoch);
  CHECK(floor.step() == AuditFloor::kNone);
  floor.Forms({kOne, kTwo, kThree}, {kOne, kTwo}, 96, kEpoch);
  floor.Forms({kOne, kTwo}, {kOne}, 160, kEpoch + absl::Seconds(10));
  CHECK(floor.step() == 96);
  floor.Passed({kOne, kTwo});
  CHECK(floor.step() == 96);

  SECTION("heard") { floor.Passed({kOne, kThree}); }
  SECTION("gone") { floor.Ended(kThree); }
  SECTION("the job went back") { floor.WentBack(80); }
  SECTION("it gives up") { floor.GiveUp(kEpoch + kTimeout + kMargin + kOneSecond, kTimeout); }
  CHECK(floor.step() == AuditFloor::kNone);
}

TEST_CASE("audit floor: where nothing was compared it is what the chief began with", "[core][rule22]") {
  Floor floor;
  floor.Forms({kOne, kTwo}, {kOne}, 0, kEpoch);
  CHECK(floor.step() == 40);
  floor.WentBack(20);
  floor.Forms({kOne, kTwo}, {kOne}, 0, kEpoch);
  CHECK(floor.step() == 20);
}

}  // namespace
}  // namespace lockstep::chief
