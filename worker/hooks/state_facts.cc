#include "worker/hooks/state_facts.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "google/protobuf/repeated_field.h"

namespace lockstep::worker {
namespace {

std::vector<int> Matching(const StateLayout& layout, const google::protobuf::RepeatedPtrField<std::string>& patterns) {
  std::vector<int> tensors;
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const StateTensor& tensor = layout.tensors[i];
    const bool matches = std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), tensor.spec.name.c_str(), 0) == 0;
    });
    if (matches && tensor.spec.dtype == DType::kF32) tensors.push_back(static_cast<int>(i));
  }
  return tensors;
}

void Count(absl::Span<const float> values, TensorFacts& facts) {
  const double width = (facts.max() - facts.min()) / kHistogramBuckets;
  const int buckets = width > 0 ? kHistogramBuckets : 1;
  for (int b = 1; b < buckets; ++b) facts.add_bucket_limit(facts.min() + b * width);
  facts.add_bucket_limit(facts.max());
  std::vector<double> counts(static_cast<size_t>(buckets));
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = width > 0 ? (value - facts.min()) / width : 0;
    ++counts[std::min(static_cast<size_t>(place), counts.size() - 1)];
  }
  for (const double count : counts) facts.add_bucket(count);
}

}  // namespace

std::vector<StateHook> StateHooksOf(const JobSpec& job, const StateLayout& layout, int64_t epoch_samples) {
  std::vector<StateHook> hooks;
  for (const job::Hook& hook : job.hooks()) {
    const bool looks = hook.statistics_size() > 0 || hook.histograms_size() > 0;
    if (!looks && hook.on() != job::Hook::ON_NAN) continue;
    hooks.push_back({hook.name(), ConditionOf(hook, job, epoch_samples), Matching(layout, hook.statistics()),
                     Matching(layout, hook.histograms())});
  }
  return hooks;
}

TensorFacts FactsOf(absl::string_view name, absl::Span<const float> values, bool histogram) {
  TensorFacts facts;
  facts.set_name(std::string(name));
  facts.set_values(values.size());
  uint64_t finite = 0, zeros = 0;
  double min = 0, max = 0, sum = 0, sum_squares = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double wide = value;
    min = finite == 0 ? wide : std::min(min, wide);
    max = finite == 0 ? wide : std::max(max, wide);
    ++finite;
    zeros += wide == 0 ? 1 : 0;
    sum += wide;
    sum_squares += wide * wide;
  }
  facts.set_not_finite(values.size() - finite);
  facts.set_zeros(zeros);
  facts.set_min(min);
  facts.set_max(max);
  facts.set_sum(sum);
  facts.set_sum_squares(sum_squares);
  // Around the mean: the difference of two sums loses what is small beside the mean.
  const double mean = finite == 0 ? 0 : sum / static_cast<double>(finite);
  double around = 0;
  for (const float value : values) {
    if (std::isfinite(value)) around += (value - mean) * (value - mean);
  }
  facts.set_deviation(finite == 0 ? 0 : std::sqrt(around / static_cast<double>(finite)));
  if (histogram && finite > 0) Count(values, facts);
  return facts;
}

bool IsFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
}

}  // namespace lockstep::worker
