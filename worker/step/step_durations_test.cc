#include "worker/step/step_durations.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace lockstep::worker {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST_CASE("step durations: quantiles are those of the sorted list of the newest 1,024 steps", "[step]") {
  std::mt19937 random(7);
  std::lognormal_distribution<double> draw(2, 1);
  for (const int steps : {1, 2, 19, 1023, 1024, 1025, 5000}) {
    CAPTURE(steps);
    StepDurations durations;
    std::vector<double> all;
    absl::Time now = kStart;
    for (int i = 0; i < steps; ++i) {
      all.push_back(draw(random));
      const absl::Time end = now + absl::Milliseconds(all.back());
      durations.Applied(end - absl::Microseconds(1), end);
      // The first one lasts from its own begin.
      if (i == 0) all.back() = 0.001;
      now = end;
    }

    std::vector<double> newest(all.end() - std::min<ptrdiff_t>(1024, steps), all.end());
    std::sort(newest.begin(), newest.end());
    for (const double quantile : {0.0, 0.5, 0.95, 1.0}) {
      const auto rank = static_cast<size_t>(quantile * static_cast<double>(newest.size() - 1) + 0.5);
      CHECK(durations.QuantileMs(quantile) == Approx(newest[rank]).epsilon(1e-4));
    }
  }
}

TEST_CASE("step durations: a few long steps among fast ones show in p95 alone", "[step]") {
  StepDurations durations;
  absl::Time now = kStart;
  for (int i = 0; i < 1000; ++i) {
    const absl::Time end = now + absl::Milliseconds(i % 10 == 9 ? 100 : 1);
    durations.Applied(now, end);
    now = end;
  }

  CHECK(durations.QuantileMs(0.5) == Approx(1));
  CHECK(durations.QuantileMs(0.95) == Approx(100));
}

TEST_CASE("step durations: what lies between two generations belongs to no step", "[step]") {
  StepDurations durations;
  CHECK(durations.QuantileMs(0.5) == 0);
  durations.Applied(kStart, kStart + absl::Milliseconds(10));

  durations.Interrupted();
  durations.Applied(kStart + absl::Seconds(60), kStart + absl::Seconds(60) + absl::Milliseconds(12));

  CHECK(durations.QuantileMs(1) == Approx(12));
}

}  // namespace
}  // namespace lockstep::worker
