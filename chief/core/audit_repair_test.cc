#include "chief/core/audit_repair.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kFound = absl::FromUnixSeconds(1000);

std::vector<AuditRepair::Named> Of(const std::string& host) { return {{Incarnation{1, 1}, "worker-1", host}}; }

TEST_CASE("audit repair: what is written stays what it was, also when it is written again", "[core][rule22]") {
  AuditRepair repair(std::nullopt);
  CHECK_FALSE(repair.MayRecord(kFound));
  CHECK(repair.Found(48, "they differ", kFound + absl::Seconds(1)));
  CHECK_FALSE(repair.Found(64, "they differ again", kFound));
  REQUIRE(repair.MayRecord(kFound));
  const RecordRepair order = repair.Record("line~1", Of("alpha"));
  CHECK(order.found_at == 48);
  CHECK(order.hosts == std::vector<std::string>{"alpha"});
  CHECK_FALSE(repair.MayRecord(kFound));

  CHECK(repair.Refused(kFound, "the disk is full"));
  CHECK_FALSE(repair.MayRecord(kFound));
  CHECK_THAT(repair.Text(kFound), Catch::Contains("the disk is full"));
  REQUIRE(repair.NextDeadline(kFound) < kFound + absl::Minutes(1));
  REQUIRE(repair.MayRecord(repair.NextDeadline(kFound)));
  CHECK(repair.Record("line~1", {}) == order);
  CHECK(repair.IsOrdered("line~1"));
  repair.Done(kFound);

  CHECK_FALSE(repair.pending());
  CHECK_FALSE(repair.IsOrdered("line~1"));
  CHECK(repair.Text(kFound).empty());
  CHECK(repair.NextDeadline(kFound) == absl::InfiniteFuture());
}

TEST_CASE("audit repair: a host that is named twice within so many steps is known, also over chiefs",
          "[core][rule22]") {
  const uint64_t second = GENERATE(48ul, 32ul, 48 + AuditRepair::kSoon, 49 + AuditRepair::kSoon);
  const std::string host = GENERATE("alpha", "beta");
  AuditRepair repair(PastRepair{48, {"alpha"}});
  repair.Found(second, "they differ", kFound);
  CHECK(repair.NamedTwice().empty());
  repair.Record("line~2", Of(host));

  const bool soon = second <= 48 + AuditRepair::kSoon;
  CHECK(repair.IsSoon() == soon);
  CHECK(repair.NamedTwice() == (soon && host == "alpha" ? "alpha" : ""));
  repair.Done(kFound);
  repair.Found(second + 1, "they differ", kFound);
  CHECK(repair.IsSoon());
}

TEST_CASE("audit repair: a pause of the chief moves its deadlines", "[core][rule22]") {
  AuditRepair repair(std::nullopt);
  repair.Found(48, "they differ", kFound + absl::Seconds(1));
  repair.ShiftDeadlines(absl::Minutes(1));
  CHECK(repair.limit() == kFound + absl::Seconds(61));
}

}  // namespace
}  // namespace lockstep::chief
