#include "chief/core/stragglers.h"

#include <algorithm>
#include <cmath>

namespace lockstep::chief {
namespace {

// Of an even number the lower one in the middle: of two members the slower is compared with the other. REQUIRES: there
// are values.
double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

bool IsSound(const Stragglers::Counters& counters) {
  return std::isfinite(counters.steps) && std::isfinite(counters.samples) && std::isfinite(counters.compute_seconds);
}

}  // namespace

std::vector<Stragglers::Change> Stragglers::Told(absl::Time now, const Generation& generation, size_t members,
                                                 const Incarnation& member, const Counters& counters) {
  if (generation != generation_) {
    generation_ = generation;
    windows_.clear();
    speeds_.clear();
  }
  if (!IsSound(counters)) {
    windows_.erase(member);
    return {};
  }
  const auto [entry, first] = windows_.try_emplace(member, Window{now, counters});
  if (first) return {};
  Window& window = entry->second;
  const double steps = counters.steps - window.begin.steps;
  const double samples = counters.samples - window.begin.samples;
  const double seconds = counters.compute_seconds - window.begin.compute_seconds;
  if (steps < 0 || samples < 0 || seconds < 0) {
    window = {now, counters};
    return {};
  }
  if (steps < kWindow || now - window.since < kLeast) return {};
  speeds_[member] = {seconds / steps, samples > 0 ? seconds / samples : 0};
  window = {now, counters};
  return members > 1 && speeds_.size() >= members ? Compare() : std::vector<Change>();
}

std::vector<Stragglers::Change> Stragglers::Compare() {
  std::vector<double> per_step, per_sample;
  for (const auto& [member, speed] : speeds_) {
    per_step.push_back(speed.per_step);
    per_sample.push_back(speed.per_sample);
  }
  const double step = Median(std::move(per_step));
  const double sample = Median(std::move(per_sample));
  std::vector<Change> changes;
  for (const auto& [member, speed] : std::exchange(speeds_, {})) {
    if (step <= 0 || sample <= 0) continue;
    Seen& seen = seen_[member];
    seen.slowdown = std::min(speed.per_step / step, speed.per_sample / sample);
    const bool straggles = seen.slowdown >= (seen.straggles ? kRecovered : kSlow);
    if (straggles != seen.straggles) changes.push_back({member, straggles, seen.slowdown});
    seen.straggles = straggles;
  }
  return changes;
}

bool Stragglers::Any() const {
  return std::any_of(seen_.begin(), seen_.end(), [](const auto& entry) { return entry.second.straggles; });
}

void Stragglers::Forget(const Incarnation& gone) {
  windows_.erase(gone);
  speeds_.erase(gone);
  seen_.erase(gone);
  std::erase_if(tried_, [&](const auto& pair) { return pair.first == gone || pair.second == gone; });
}

}  // namespace lockstep::chief
