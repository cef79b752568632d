#include "common/graph/schedule.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/golden_rates.h"

namespace lockstep {
namespace {

TEST_CASE("schedule: step and cosine are PyTorch's, the warm-up is a straight line", "[graph]") {
  const ScheduleRule step{.kind = ScheduleKind::kStep, .lr = 0.1, .step_size = 3, .gamma = 0.5};
  const ScheduleRule cosine{.kind = ScheduleKind::kCosine, .lr = 0.1, .total_steps = 12, .min_lr = 0.001};
  const std::vector<double> stepped = GoldenRates("schedule_step");
  const std::vector<double> annealed = GoldenRates("schedule_cosine");
  REQUIRE(stepped.size() == 12);
  REQUIRE(annealed.size() == 12);
  for (int s = 0; s < 12; ++s) {
    CHECK(LearningRate(step, s, 0) == Approx(stepped[static_cast<size_t>(s)]).epsilon(1e-13));
    CHECK(LearningRate(cosine, s, 0) == Approx(annealed[static_cast<size_t>(s)]).epsilon(1e-12));
  }
  CHECK(LearningRate(cosine, 12, 0) == 0.001);
  CHECK(LearningRate(cosine, 1000, 0) == 0.001);

  const ScheduleRule warm{.kind = ScheduleKind::kCosine, .lr = 0.4, .warmup_steps = 4, .total_steps = 8};
  CHECK(LearningRate(warm, 0, 0) == 0.1);
  CHECK(LearningRate(warm, 3, 0) == 0.4);
  CHECK(LearningRate(warm, 4, 0) == 0.4);
  CHECK(LearningRate(warm, 6, 0) == 0.2);
  CHECK(LearningRate(warm, 8, 0) == 0);
  CHECK(LearningRate({.lr = 0.3}, 1 << 20, 0) == 0.3);
}

TEST_CASE("schedule: the others are PyTorch's too", "[graph]") {
  using Kind = ScheduleKind;
  const std::pair<const char*, ScheduleRule> cases[] = {
      {"schedule_linear", {.kind = Kind::kLinear, .lr = 0.1, .total_steps = 12, .min_lr = 0.001}},
      {"schedule_polynomial", {.kind = Kind::kPolynomial, .lr = 0.1, .total_steps = 12, .power = 1.7}},
      {"schedule_exponential", {.kind = Kind::kExponential, .lr = 0.1, .step_size = 3, .gamma = 0.5}},
      {"schedule_milestones", {.kind = Kind::kMilestones, .lr = 0.1, .gamma = 0.5, .milestones = {2, 3, 7}}},
      {"schedule_cosine_restarts",
       {.kind = Kind::kCosineRestarts, .lr = 0.1, .step_size = 3, .min_lr = 0.001, .growth = 2}},
      {"schedule_one_cycle",
       {.kind = Kind::kOneCycle,
        .lr = 0.1,
        .total_steps = 13,
        .pct_start = 0.4,
        .div_factor = 10,
        .final_div_factor = 100}},
  };
  for (const auto& [name, rule] : cases) {
    const std::vector<double> rates = GoldenRates(name);
    REQUIRE(rates.size() == 12);
    for (int s = 0; s < 12; ++s) {
      CAPTURE(name, s);
      CHECK(LearningRate(rule, s, 0) == Approx(rates[static_cast<size_t>(s)]).epsilon(1e-11));
    }
    CHECK(EndsWithJob(rule.kind) == (rule.total_steps > 0));
  }
}

TEST_CASE("schedule: behind its end a rate stays, and a warm-up comes first", "[graph]") {
  ScheduleRule rule{.kind = ScheduleKind::kLinear, .lr = 0.4, .warmup_steps = 4, .total_steps = 8, .min_lr = 0.1};
  CHECK(LearningRate(rule, 0, 0) == 0.1);
  CHECK(LearningRate(rule, 4, 0) == 0.4);
  CHECK(LearningRate(rule, 6, 0) == Approx(0.25));
  CHECK(LearningRate(rule, 8, 0) == 0.1);
  CHECK(LearningRate(rule, 1000, 0) == 0.1);
  rule.kind = ScheduleKind::kPolynomial;
  CHECK(LearningRate(rule, 1000, 0) == 0.1);
  const ScheduleRule cycle{.kind = ScheduleKind::kOneCycle, .lr = 0.4, .total_steps = 8};
  CHECK(LearningRate(cycle, 1000, 0) == Approx(0.4 / 25 / 1e4));
  CHECK(LearningRate({.kind = ScheduleKind::kOneCycle, .lr = 0.4, .total_steps = 1}, 0, 0) > 0);
  ScheduleRule restarts{.kind = ScheduleKind::kCosineRestarts, .lr = 0.4, .warmup_steps = 2, .step_size = 4};
  CHECK(LearningRate(restarts, 2, 0) == 0.4);
  CHECK(LearningRate(restarts, 4, 0) == 0.2);
  CHECK(LearningRate(restarts, 6, 0) == 0.4);
  CHECK(LearningRate(restarts, int64_t{1} << 60, 0) >= 0);
  restarts.growth = 100;
  CHECK(LearningRate(restarts, int64_t{1} << 62, 0) >= 0);
}

TEST_CASE("schedule: powers and cosines without libm are as good as libm's", "[graph]") {
  double worst = 0;
  for (int i = 0; i <= 100000; ++i) {
    const double x = i / 100000.0;
    const double exact =
        static_cast<double>(std::cos(3.14159265358979323846264338327950288L * static_cast<long double>(x)));
    worst = std::max(worst, std::abs(CosPi(x) - exact));
  }
  CHECK(worst < 0x1p-51);
  CHECK(CosPi(0) == 1);
  CHECK(CosPi(0.5) == 0);
  CHECK(CosPi(1) == -1);

  for (const double base : {0.9, 0.999, 0.5, 1.0}) {
    for (const int64_t n : {0, 1, 2, 3, 10, 1000, 99999}) {
      const double exact = std::pow(base, static_cast<double>(n));
      CHECK(IntegerPower(base, n) == Approx(exact).epsilon(1e-11).margin(1e-300));
    }
  }
  CHECK(IntegerPower(0.9, int64_t{1} << 60) == 0);
}

}  // namespace
}  // namespace lockstep
