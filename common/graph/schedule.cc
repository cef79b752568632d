#include "common/graph/schedule.h"

#include <algorithm>

#include "common/math/power.h"
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

bool EndsWithJob(ScheduleKind kind) {
  return kind == ScheduleKind::kCosine || kind == ScheduleKind::kLinear || kind == ScheduleKind::kPolynomial ||
         kind == ScheduleKind::kOneCycle;
}

namespace {

// From `from` to `to` by half a cosine.
double Annealed(double from, double to, double done) { return to + (from - to) / 2 * (1 + CosPi(done)); }

double Share(int64_t steps, int64_t of) {
  return of <= 0 ? 1.0 : std::min(1.0, static_cast<double>(steps) / static_cast<double>(of));
}

// How much of its period has gone by `steps` behind the warmup.
double PeriodShare(const ScheduleRule& schedule, int64_t steps) {
  int64_t period = std::max<int64_t>(1, schedule.step_size);
  if (schedule.growth <= 1) return Share(steps % period, period);
  while (steps >= period) {
    steps -= period;
    if (__builtin_mul_overflow(period, schedule.growth, &period)) break;
  }
  return Share(steps, period);
}

// A rate that begins below the least one stays where it is.
double Cut(const ScheduleRule& schedule, int64_t rate_cuts) {
  const double least = std::min(schedule.min_lr, schedule.lr);
  return std::max(least, schedule.lr * IntegerPower(schedule.gamma, rate_cuts));
}

// PyTorch ends its phases one step early.
double OneCycle(const ScheduleRule& schedule, int64_t step) {
  const double first = schedule.lr / schedule.div_factor;
  const double last = first / schedule.final_div_factor;
  const double peak = schedule.pct_start * static_cast<double>(schedule.total_steps) - 1;
  const double end = static_cast<double>(schedule.total_steps) - 1;
  const auto s = static_cast<double>(step);
  if (s <= peak) return Annealed(first, schedule.lr, peak > 0 ? s / peak : 1.0);
  return Annealed(schedule.lr, last, end > peak ? std::min(1.0, (s - peak) / (end - peak)) : 1.0);
}

}  // namespace

double LearningRate(const ScheduleRule& schedule, int64_t step, int64_t rate_cuts) {
  if (step < schedule.warmup_steps) {
    const double share = static_cast<double>(step + 1) / static_cast<double>(schedule.warmup_steps);
    return share * (schedule.kind == ScheduleKind::kPlateau ? Cut(schedule, rate_cuts) : schedule.lr);
  }
  const double done = Share(step - schedule.warmup_steps, schedule.total_steps - schedule.warmup_steps);
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return schedule.lr;
    case ScheduleKind::kStep:
      return schedule.lr * IntegerPower(schedule.gamma, schedule.step_size > 0 ? step / schedule.step_size : 0);
    case ScheduleKind::kMilestones: {
      const auto& milestones = schedule.milestones;
      const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step) - milestones.begin();
      return schedule.lr * IntegerPower(schedule.gamma, passed);
    }
    case ScheduleKind::kExponential:
      return schedule.lr * Pow(schedule.gamma, static_cast<double>(step) / static_cast<double>(schedule.step_size));
    case ScheduleKind::kCosine:
      return Annealed(schedule.lr, schedule.min_lr, done);
    case ScheduleKind::kLinear:
      return schedule.min_lr + (schedule.lr - schedule.min_lr) * (1 - done);
    case ScheduleKind::kPolynomial:
      return schedule.min_lr + (schedule.lr - schedule.min_lr) * Pow(1 - done, schedule.power);
    case ScheduleKind::kCosineRestarts:
      return Annealed(schedule.lr, schedule.min_lr, PeriodShare(schedule, step - schedule.warmup_steps));
    case ScheduleKind::kOneCycle:
      return OneCycle(schedule, step);
    case ScheduleKind::kPlateau:
      return Cut(schedule, rate_cuts);
  }
  LS_CHECK(false, "every schedule is named above");
}

}  // namespace lockstep
