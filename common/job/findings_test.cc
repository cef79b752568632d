#include "common/job/findings.h"

#include <catch2/catch.hpp>
#include <utility>

#include "absl/status/status.h"
#include "common/job/job.h"

namespace lockstep {
namespace {

TEST_CASE("findings: an error says the line and the key that it is about", "[job]") {
  Findings findings;
  CHECK(findings.At("data.eval", absl::InvalidArgumentError("no samples")).message() == "data.eval: no samples");

  JobPlaces places("job.yaml");
  places.Set("data.eval", "job.yaml:4:3");
  findings.KnowPlaces(std::move(places));
  const absl::Status at = findings.At("data.eval", absl::NotFoundError("no samples"));
  CHECK(at == absl::NotFoundError("job.yaml:4:3: data.eval: no samples"));
}

TEST_CASE("findings: an error that names its key itself names it once", "[job]") {
  JobPlaces places("job.yaml");
  places.Set("hooks.0.statistics", "job.yaml:20:33");
  Findings findings;
  findings.KnowPlaces(std::move(places));
  CHECK(findings.At("hooks.0.statistics", absl::InvalidArgumentError("hooks.0.statistics: no tensor")).message() ==
        "job.yaml:20:33: hooks.0.statistics: no tensor");
}

}  // namespace
}  // namespace lockstep
