#include "common/clock/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

absl::Duration SteadyReading() { return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace

SteadyClock::SteadyClock() : start_(absl::Now()), steady_start_(SteadyReading()) {}

absl::Time SteadyClock::Now() const { return start_ + (SteadyReading() - steady_start_); }

absl::Time SteadyNow() {
  static const SteadyClock* const kClock = new SteadyClock;
  return kClock->Now();
}

}  // namespace lockstep
