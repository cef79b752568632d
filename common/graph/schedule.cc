#include "common/graph/schedule.h"

#include <algorithm>

#include "common/status/check.h"

namespace lockstep {
namespace {

// Taylor series about 0 for |t| <= pi/4, from the smallest term on: the first one left out is below 2^-56.
double SinSeries(double t) {
  const double t2 = t * t;
  double sum = 0;
  for (int k = 17; k >= 3; k -= 2) sum = (1.0 - sum) * t2 / (k * (k - 1));
  return t * (1.0 - sum);
}

double CosSeries(double t) {
  const double t2 = t * t;
  double sum = 0;
  for (int k = 18; k >= 2; k -= 2) sum = (1.0 - sum) * t2 / (k * (k - 1));
  return 1.0 - sum;
}

}  // namespace

double IntegerPower(double base, int64_t exponent) {
  LS_CHECK(exponent >= 0, "a power of whole, not negative exponent");
  double result = 1;
  for (double square = base; exponent > 0; exponent >>= 1, square *= square) {
    if (exponent & 1) result *= square;
  }
  return result;
}

double CosPi(double x) {
  constexpr double kPi = 3.14159265358979323846;
  if (x > 0.5) return -CosPi(1.0 - x);
  return x <= 0.25 ? CosSeries(kPi * x) : SinSeries(kPi * (0.5 - x));
}

double LearningRate(const ScheduleRule& schedule, int64_t step) {
  if (step < schedule.warmup_steps) {
    return schedule.lr * (static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps));
  }
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return schedule.lr;
    case ScheduleKind::kStep:
      return schedule.lr * IntegerPower(schedule.gamma, schedule.step_size > 0 ? step / schedule.step_size : 0);
    case ScheduleKind::kCosine: {
      const int64_t length = schedule.total_steps - schedule.warmup_steps;
      const double done =
          length <= 0 ? 1.0
                      : std::min(1.0, static_cast<double>(step - schedule.warmup_steps) / static_cast<double>(length));
      return schedule.min_lr + (schedule.lr - schedule.min_lr) / 2 * (1 + CosPi(done));
    }
  }
  LS_CHECK(false, "every schedule is named above");
}

}  // namespace lockstep
