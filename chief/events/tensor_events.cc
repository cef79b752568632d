#include "chief/events/tensor_events.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::chief {
namespace {

double PartOf(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

double MeanOf(const TensorFacts& tensor) {
  const uint64_t finite = tensor.values() - std::min(tensor.values(), tensor.not_finite());
  return finite == 0 ? 0 : tensor.sum() / static_cast<double>(finite);
}

}  // namespace

Scalars StatisticsOf(const StateFacts& facts) {
  Scalars values;
  for (const TensorFacts& tensor : facts.statistics()) {
    const auto add = [&](const char* what, double value) {
      values.emplace_back(absl::StrCat("tensors/", tensor.name(), "/", what), value);
    };
    add("min", tensor.min());
    add("max", tensor.max());
    add("mean", MeanOf(tensor));
    add("deviation", tensor.deviation());
    add("norm", std::sqrt(tensor.sum_squares()));
    add("zeros", PartOf(tensor.zeros(), tensor.values()));
    add("not_finite", PartOf(tensor.not_finite(), tensor.values()));
  }
  return values;
}

Histograms HistogramsOf(const StateFacts& facts) {
  Histograms histograms;
  for (const TensorFacts& tensor : facts.histograms()) {
    if (tensor.bucket_size() == 0 || tensor.bucket_size() != tensor.bucket_limit_size()) continue;
    tensorboard::HistogramProto& histogram =
        histograms.emplace_back(absl::StrCat("tensors/", tensor.name()), tensorboard::HistogramProto()).second;
    histogram.set_min(tensor.min());
    histogram.set_max(tensor.max());
    histogram.set_num(static_cast<double>(tensor.values() - std::min(tensor.values(), tensor.not_finite())));
    histogram.set_sum(tensor.sum());
    histogram.set_sum_squares(tensor.sum_squares());
    *histogram.mutable_bucket_limit() = tensor.bucket_limit();
    *histogram.mutable_bucket() = tensor.bucket();
  }
  return histograms;
}

std::vector<std::string> StatisticsLines(const StateFacts& facts) {
  std::vector<std::string> lines;
  const int shown = std::min(facts.statistics_size(), kMostStatisticsLines);
  for (int i = 0; i < shown; ++i) {
    const TensorFacts& tensor = facts.statistics(i);
    lines.push_back(absl::StrFormat(
        "%s: %.4g to %.4g, mean %.4g, deviation %.4g, norm %.4g, %.3g%% zeros, %d not finite", tensor.name(),
        tensor.min(), tensor.max(), MeanOf(tensor), tensor.deviation(), std::sqrt(tensor.sum_squares()),
        100 * PartOf(tensor.zeros(), tensor.values()), tensor.not_finite()));
  }
  if (shown < facts.statistics_size()) {
    lines.push_back(absl::StrCat(facts.statistics_size() - shown, " more tensors: TensorBoard has them"));
  }
  return lines;
}

}  // namespace lockstep::chief
