#include "common/protocol/repair_lineage.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("repair lineage: repairs are counted, and the first name stays", "[protocol]") {
  const Lineage first = RepairedLineage("3f00");
  const Lineage second = RepairedLineage(first);

  CHECK(first == "3f00~1");
  CHECK(second == "3f00~2");
  CHECK(RepairsOf("3f00") == 0);
  CHECK(RepairsOf(second) == 2);
  CHECK(FirstLineage(second) == "3f00");
}

TEST_CASE("repair lineage: a generation's lineage belongs to the repair that it follows", "[protocol]") {
  const Lineage lineage = LineageOf("3f00~2", Generation{7, 1});

  CHECK(JobLineage(lineage) == "3f00~2");
  CHECK(RepairsOf(lineage) == 2);
  CHECK(RepairedLineage(lineage) == "3f00~3");
  CHECK(BegunBy(lineage) == Generation{7, 1});
  CHECK(RepairsOf("3f00~x") == 0);
}

}  // namespace
}  // namespace lockstep
