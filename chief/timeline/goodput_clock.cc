#include "chief/timeline/goodput_clock.h"

#include <algorithm>

#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

// Time that ends while the job is in `phase` and no step was agreed.
void Count(Phase phase, double seconds, Goodput& totals) {
  switch (phase) {
    case Phase::kRunning:
      return totals.set_stalled(totals.stalled() + seconds);
    case Phase::kWaiting:
      return totals.set_waiting(totals.waiting() + seconds);
    case Phase::kAdopting:
    case Phase::kForming:
    case Phase::kBreaking:
      return totals.set_forming(totals.forming() + seconds);
    case Phase::kFinishing:
    case Phase::kDone:
    case Phase::kEnded:
      return totals.set_finishing(totals.finishing() + seconds);
  }
}

}  // namespace

void GoodputClock::StartFrom(absl::Time now, const Goodput& before) {
  totals_ = before;
  since_ = now;
}

void GoodputClock::EnterPhase(absl::Time now, Phase phase) {
  if (phase == phase_) return;
  Count(phase_, absl::ToDoubleSeconds(now - since_), totals_);
  phase_ = phase;
  since_ = now;
}

void GoodputClock::Agreed(absl::Time now) {
  if (phase_ != Phase::kRunning) return;
  totals_.set_stepping(totals_.stepping() + absl::ToDoubleSeconds(now - since_));
  since_ = now;
}

Goodput GoodputClock::Totals(absl::Time now) const {
  Goodput totals = totals_;
  if (phase_ != Phase::kRunning) Count(phase_, absl::ToDoubleSeconds(now - since_), totals);
  return totals;
}

double SecondsWithoutChief(const JobStats& before, int64_t now_ms) {
  const bool stopped = !before.ended().empty() && before.exit_code() == kExitDone;
  if (before.written_ms() == 0 || stopped) return 0;
  return static_cast<double>(std::max<int64_t>(now_ms - before.written_ms(), 0)) / 1e3;
}

double GoodputShare(const Goodput& goodput) {
  const double all = goodput.stepping() + goodput.stalled() + goodput.forming() + goodput.waiting() +
                     goodput.finishing() + goodput.no_chief();
  return all < 1 ? 0 : goodput.stepping() / all;
}

}  // namespace lockstep::chief
