#include "worker/inference/reports.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/status/check.h"

namespace lockstep::worker {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

double Ratio(double part, double whole) { return whole == 0 ? kUndefined : part / whole; }

// The mean of those that are numbers.
template <typename Figure>
double Macro(const std::vector<ClassFigures>& classes, Figure figure) {
  double sum = 0;
  int64_t defined = 0;
  for (const ClassFigures& each : classes) {
    if (std::isnan(each.*figure)) continue;
    sum += each.*figure;
    ++defined;
  }
  return Ratio(sum, static_cast<double>(defined));
}

// Mann and Whitney: the share of pairs of a positive and a negative sample in which the positive one ranks higher;
// equal ranks count half. NaN where a probability is one: it has no rank. `ranked`: probability and whether it is
// positive.
double AreaUnderCurve(std::vector<std::pair<double, bool>>& ranked) {
  if (std::any_of(ranked.begin(), ranked.end(), [](const auto& one) { return std::isnan(one.first); })) {
    return kUndefined;
  }
  std::sort(ranked.begin(), ranked.end());
  double below = 0;  // negatives seen so far
  double pairs = 0;
  double positives = 0;
  for (size_t first = 0; first < ranked.size();) {
    double negative = 0, positive = 0;
    size_t last = first;
    for (; last < ranked.size() && ranked[last].first == ranked[first].first; ++last) {
      (ranked[last].second ? positive : negative) += 1;
    }
    pairs += positive * (below + negative / 2);
    below += negative;
    positives += positive;
    first = last;
  }
  return Ratio(pairs, positives * below);
}

// Of one sample, in float64. Equal probabilities come out equal whatever class they are of: the sum does not depend on
// the order of the classes. All NaN where a score is NaN, or the highest is infinite.
std::vector<double> Softmax(absl::Span<const float> scores) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> probabilities;
  for (const float score : scores) probabilities.push_back(std::exp(score - highest));
  const auto is_nan = [](double probability) { return std::isnan(probability); };
  if (std::any_of(probabilities.begin(), probabilities.end(), is_nan)) {
    return std::vector<double>(probabilities.size(), kUndefined);
  }
  std::vector<double> addends = probabilities;
  std::sort(addends.begin(), addends.end());
  const double total = std::accumulate(addends.begin(), addends.end(), 0.0);
  for (double& probability : probabilities) probability /= total;
  return probabilities;
}

}  // namespace

ClassReport ReportClasses(absl::Span<const float> scores, absl::Span<const int64_t> labels, int64_t classes) {
  const auto count = static_cast<size_t>(classes);
  LS_CHECK(classes > 0 && scores.size() == labels.size() * count, "there is a score for every class of every sample");
  ClassReport report;
  report.classes.resize(count);
  report.confusion.resize(count * count);
  std::vector<std::vector<std::pair<double, bool>>> ranked(count);
  for (size_t sample = 0; sample < labels.size(); ++sample) {
    if (labels[sample] < 0 || labels[sample] >= classes) continue;
    const absl::Span<const float> row = scores.subspan(sample * count, count);
    const auto label = static_cast<size_t>(labels[sample]);
    const auto taken = static_cast<size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    ++report.confusion[label * count + taken];
    ++report.classes[label].labels;
    ++report.classes[taken].predicted;
    if (taken == label) ++report.classes[label].correct;
    const std::vector<double> probabilities = Softmax(row);
    for (size_t c = 0; c < count; ++c) ranked[c].emplace_back(probabilities[c], c == label);
  }
  for (size_t c = 0; c < count; ++c) {
    ClassFigures& figures = report.classes[c];
    const auto correct = static_cast<double>(figures.correct);
    figures.precision = Ratio(correct, static_cast<double>(figures.predicted));
    figures.recall = Ratio(correct, static_cast<double>(figures.labels));
    figures.f1 = Ratio(2 * correct, static_cast<double>(figures.labels + figures.predicted));
    figures.auc = AreaUnderCurve(ranked[c]);
  }
  report.macro_f1 = Macro(report.classes, &ClassFigures::f1);
  report.macro_auc = Macro(report.classes, &ClassFigures::auc);
  return report;
}

ErrorReport ReportErrors(absl::Span<const float> predictions, absl::Span<const float> targets) {
  LS_CHECK(predictions.size() == targets.size() && !targets.empty(), "there is a target for every prediction");
  const auto count = static_cast<double>(targets.size());
  const double mean = std::accumulate(targets.begin(), targets.end(), 0.0) / count;
  double absolute = 0, squares = 0, distances = 0;
  for (size_t i = 0; i < targets.size(); ++i) {
    const double error = static_cast<double>(predictions[i]) - targets[i];
    absolute += std::abs(error);
    squares += error * error;
    distances += (targets[i] - mean) * (targets[i] - mean);
  }
  return {.mean_absolute = absolute / count,
          .root_mean_square = std::sqrt(squares / count),
          .r2 = distances == 0 ? kUndefined : 1 - squares / distances};
}

}  // namespace lockstep::worker
