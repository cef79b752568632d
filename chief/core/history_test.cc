#include "chief/core/history.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::chief {
namespace {

TEST_CASE("history: an earlier lineage counts up to the step where it was left", "[core]") {
  History history("job");
  history.GoOnAs("job+1.1", 0);
  history.GoOnAs("job+1.2", 50);

  CHECK(history.lineage() == "job+1.2");
  CHECK(history.Includes("job+1.2", 90));
  CHECK(history.Includes("job+1.1", 50));
  CHECK_FALSE(history.Includes("job+1.1", 51));
  CHECK(history.Includes("job", 0));
  CHECK_FALSE(history.Includes("job", 1));
  CHECK_FALSE(history.Includes("job+1.3", 0));
}

TEST_CASE("history: going on from an older state takes back what came after it", "[core]") {
  History history("job+1.1");
  history.GoOnAs("job+1.2", 50);
  history.GoOnAs("job+1.3", 49);

  CHECK(history.Includes("job+1.1", 49));
  CHECK_FALSE(history.Includes("job+1.1", 50));
  CHECK_FALSE(history.Includes("job+1.2", 50));
}

TEST_CASE("history: a beginning from a checkpoint leaves everything behind", "[core]") {
  History history("job+1.1");
  history.GoOnAs("job+1.2", 50);
  history.BeginAs("job+1.3");

  CHECK_FALSE(history.Includes("job+1.2", 50));
  CHECK_FALSE(history.Includes("job+1.1", 1));
}

TEST_CASE("history: only so many lineages are remembered, the latest ones", "[core]") {
  History history("job");
  for (int i = 1; i <= 200; ++i) history.GoOnAs("job+1." + std::to_string(i), static_cast<uint64_t>(i));

  CHECK(history.Includes("job+1.199", 200));
  CHECK_FALSE(history.Includes("job+1.1", 1));
}

TEST_CASE("history: the lineage of a generation names the job and the generation", "[core]") {
  const Lineage lineage = LineageOf("3f00", Generation{12, 7});

  CHECK(JobLineage(lineage) == "3f00");
  CHECK(BegunBy(lineage) == Generation{12, 7});
  CHECK(JobLineage("3f00") == "3f00");
  CHECK(BegunBy("3f00").IsNone());
  CHECK(BegunBy("3f00+x.y").IsNone());
}

}  // namespace
}  // namespace lockstep::chief
