#include "chief/watch/scalar_series.h"

#include <algorithm>
#include <cmath>

namespace lockstep::chief {

void ScalarSeries::Stretch::Join(const Stretch& next) {
  last_step = next.last_step;
  at_ms = next.at_ms;
  sum += next.sum;
  low = std::fmin(low, next.low);  // of a number and NaN the number
  high = std::fmax(high, next.high);
  count += next.count;
}

void ScalarSeries::Add(int64_t step, int64_t at_ms, double value) {
  if (!empty() && step <= newest().last_step) return;
  const Stretch point{step, step, at_ms, value, value, value, 1};
  ++size_;
  if (!empty() && newest().count < per_stretch_) return stretches_.back().Join(point);
  if (stretches_.size() == kMostStretches) JoinPairs();
  stretches_.push_back(point);
}

void ScalarSeries::DropFrom(int64_t step) {
  while (!empty() && newest().first_step >= step) {
    size_ -= newest().count;
    stretches_.pop_back();
  }
  // A stretch that begins before `step` keeps its sums, as its points cannot be separated any more. The next point
  // begins another one.
  if (!empty() && newest().last_step >= step) stretches_.back().last_step = step - 1;
}

void ScalarSeries::JoinPairs() {
  size_t kept = 0;
  for (size_t i = 0; i < stretches_.size(); i += 2) {
    Stretch joined = stretches_[i];
    if (i + 1 < stretches_.size()) joined.Join(stretches_[i + 1]);
    stretches_[kept++] = joined;
  }
  stretches_.resize(kept);
  per_stretch_ *= 2;
}

std::vector<ScalarSeries::Stretch> ScalarSeries::Sample(int64_t from, int64_t to, size_t most) const {
  const auto begin = std::lower_bound(stretches_.begin(), stretches_.end(), from,
                                      [](const Stretch& stretch, int64_t step) { return stretch.last_step < step; });
  const auto end = std::upper_bound(begin, stretches_.end(), to,
                                    [](int64_t step, const Stretch& stretch) { return step < stretch.first_step; });
  const auto count = static_cast<size_t>(end - begin);
  const size_t at_once = (count + most - 1) / most;
  std::vector<Stretch> sample;
  for (size_t i = 0; i < count; ++i) {
    const Stretch& stretch = begin[static_cast<ptrdiff_t>(i)];
    if (i % at_once == 0) {
      sample.push_back(stretch);
    } else {
      sample.back().Join(stretch);
    }
  }
  return sample;
}

}  // namespace lockstep::chief
