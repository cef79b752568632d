#include "tests/simulation/progress_oracle.h"

#include <catch2/catch.hpp>

namespace lockstep::simulation {
namespace {

Hardships Hangs(int times) {
  Hardships hardships;
  for (int i = 0; i < times; ++i) hardships.Count(FaultKind::kHangWorker);
  return hardships;
}

TEST_CASE("progress oracle: the bound of an undisturbed job with the usual limits is the one that is documented",
          "[simulation]") {
  const ClusterSettings usual;
  CHECK(ProgressOracle::Limit(usual, Hardships()) == absl::Seconds(20.2));
}

TEST_CASE("progress oracle: a worker that hangs is given up, and waited for until it ends its process",
          "[simulation]") {
  ClusterSettings settings;
  const Hardships none;
  const auto more = [&](int times) {
    return ProgressOracle::Limit(settings, Hangs(times)) - ProgressOracle::Limit(settings, none);
  };
  CHECK(more(1) == absl::Seconds(12));

  SECTION("it stops computing later or earlier") {
    settings.policy.training.abort_limit += absl::Seconds(3);
    CHECK(more(1) == absl::Seconds(15));
  }
  SECTION("no hang of the simulation lasts longer than the longest") {
    CHECK(more(2) == absl::Seconds(22));
    CHECK(more(3) == absl::Seconds(32));
    CHECK(more(4) == absl::Seconds(32));
  }
  SECTION("each worker that hangs meanwhile adds as much once more") {
    const absl::Duration each = ProgressOracle::Each(settings, Hangs(1));
    CHECK(each == absl::Seconds(10 + 10 + 1.5 + 0.5) + settings.policy.ack_limit);
  }
}

}  // namespace
}  // namespace lockstep::simulation
