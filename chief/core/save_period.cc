#include "chief/core/save_period.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

absl::Duration DalyInterval(absl::Duration cost, absl::Duration between_failures) {
  const double c = absl::ToDoubleSeconds(cost);
  const double m = absl::ToDoubleSeconds(between_failures);
  if (c >= 2 * m) return between_failures;
  const double root = std::sqrt(c / (2 * m));
  return absl::Seconds(std::sqrt(2 * c * m) * (1 + root / 3 + root * root / 9) - c);
}

void SavePeriod::Ran(const TrainingPolicy& policy, const Span& span) {
  worker_time_ += span.passed * span.members;
  open_.took += span.passed;
  open_.saving = open_.saving || span.saving;
  open_.counts = open_.counts && !span.trouble;
  if (span.agreed == open_.from) return;
  const uint64_t steps = span.agreed > open_.from ? span.agreed - open_.from : 0;
  bool counts = open_.counts && steps > 0;
  for (uint64_t step = open_.from; counts && step < span.agreed; ++step) counts = !EvaluationDue(policy, step);
  if (counts) {
    Time& time = open_.saving ? saving_ : calm_;
    time.passed += open_.took;
    time.steps += static_cast<double>(steps);
  }
  open_ = {.from = span.agreed};
}

void SavePeriod::Saved() {
  if (++saves_ < kSavesRemembered) return;
  saves_ /= 2;
  for (Time* time : {&saving_, &calm_}) {
    time->passed /= 2;
    time->steps /= 2;
  }
}

absl::Duration SavePeriod::Cost() const {
  const absl::Duration undisturbed =
      calm_.steps > 0 ? calm_.passed * (saving_.steps / calm_.steps) : absl::ZeroDuration();
  return std::max(saving_.passed - undisturbed, absl::ZeroDuration()) / saves_;
}

absl::Duration SavePeriod::Every() const {
  if (saves_ == 0) return kFirst;
  // Saves do not overlap, and leave as much time between them as they take.
  const absl::Duration least = std::max(kLeast, 2 * (saving_.passed / saves_));
  const absl::Duration cost = Cost();
  const absl::Duration best = cost > absl::ZeroDuration() ? DalyInterval(cost, BetweenLosses()) : kLeast;
  return std::clamp(best, std::min(least, kMost), kMost);
}

std::string SavePeriod::News() {
  const absl::Duration every = Every();
  if (saves_ == 0 || (every < told_ * 1.25 && every > told_ * 0.75)) return "";
  told_ = every;
  const auto text = [](absl::Duration duration, absl::Duration unit) {
    return absl::FormatDuration(absl::Trunc(duration, unit));
  };
  return absl::StrCat("saves are ", text(every, absl::Seconds(1)), " apart from now on: a save costs ",
                      text(Cost(), absl::Milliseconds(1)), " of training, and a worker is taken to be lost every ",
                      text(BetweenLosses(), absl::Seconds(1)), " (", losses_, " were, in ",
                      text(worker_time_, absl::Seconds(1)), " of worker time, and one more per ",
                      absl::FormatDuration(kAssumed), " is assumed)");
}

}  // namespace lockstep::chief
