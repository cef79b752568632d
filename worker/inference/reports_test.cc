#include "worker/inference/reports.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lockstep::worker {
namespace {

// The share of pairs of samples, one of the class and one of another, that the probability ranks rightly.
double PairsRankedRightly(const std::vector<float>& scores, const std::vector<int64_t>& labels, size_t classes,
                          size_t asked) {
  const auto probability = [&](size_t sample) {
    double total = 0;
    for (size_t c = 0; c < classes; ++c) {
      total += std::exp(double{scores[sample * classes + c]} - scores[sample * classes + asked]);
    }
    return 1 / total;
  };
  double right = 0, pairs = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    for (size_t j = 0; j < labels.size(); ++j) {
      if (labels[i] != static_cast<int64_t>(asked) || labels[j] == static_cast<int64_t>(asked)) continue;
      const double difference = probability(i) - probability(j);
      right += std::abs(difference) < 1e-12 ? 0.5 : difference > 0 ? 1 : 0;
      ++pairs;
    }
  }
  return right / pairs;
}

}  // namespace

// Figures of sklearn.metrics for these labels and predictions: confusion_matrix, precision_recall_fscore_support.
TEST_CASE("reports: classes against figures worked out by hand", "[inference]") {
  //                 taken for:      0         0         1         2         2         1
  const std::vector<float> scores = {2, 0, 0, 3, 1, 0, 0, 1, 0, 0, 1, 2, 0, 0, 1, 0, 4, 1};
  const std::vector<int64_t> labels = {0, 1, 1, 2, 1, -100};

  const ClassReport report = ReportClasses(scores, labels, 3);

  CHECK(report.confusion == std::vector<int64_t>{1, 0, 0, 1, 1, 1, 0, 0, 1});
  CHECK(report.classes[0].precision == Approx(0.5));
  CHECK(report.classes[0].recall == Approx(1));
  CHECK(report.classes[0].f1 == Approx(2.0 / 3));
  CHECK(report.classes[1].precision == Approx(1));
  CHECK(report.classes[1].recall == Approx(1.0 / 3));
  CHECK(report.classes[1].f1 == Approx(0.5));
  CHECK(report.classes[2].f1 == Approx(2.0 / 3));
  CHECK(report.macro_f1 == Approx((2.0 / 3 + 0.5 + 2.0 / 3) / 3));
}

TEST_CASE("reports: the area under the curve is the share of pairs ranked rightly", "[inference]") {
  std::mt19937 random(GENERATE(1, 2, 3));
  constexpr size_t kClasses = 4;
  std::vector<float> scores;
  std::vector<int64_t> labels;
  for (int sample = 0; sample < 60; ++sample) {
    labels.push_back(static_cast<int64_t>(random() % kClasses));
    // Few values, so that many samples tie.
    for (size_t c = 0; c < kClasses; ++c) scores.push_back(static_cast<float>(random() % 3));
  }

  const ClassReport report = ReportClasses(scores, labels, kClasses);

  double sum = 0;
  for (size_t c = 0; c < kClasses; ++c) {
    CHECK(report.classes[c].auc == Approx(PairsRankedRightly(scores, labels, kClasses, c)));
    sum += report.classes[c].auc;
  }
  CHECK(report.macro_auc == Approx(sum / kClasses));
}

TEST_CASE("reports: what nothing defines is no number, and no part of a mean", "[inference]") {
  const std::vector<float> scores = {1, 0, 0, 1, 0, 0};
  const ClassReport report = ReportClasses(scores, std::vector<int64_t>{0, 0}, 3);

  CHECK(report.classes[0].f1 == Approx(1));
  CHECK(std::isnan(report.classes[0].auc));
  CHECK(std::isnan(report.classes[1].precision));
  CHECK(std::isnan(report.classes[1].f1));
  CHECK(report.macro_f1 == Approx(1));
  CHECK(std::isnan(report.macro_auc));
}

TEST_CASE("reports: scores that are no numbers, or infinite, have no rank, and what else is counted stands",
          "[inference]") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float odd : {kNan, kInfinity}) {
    std::vector<float> scores = {2, 1, 0, 1, 3, 0, odd, 0, 0, 0, 1, 2};
    const ClassReport report = ReportClasses(scores, std::vector<int64_t>{0, 1, 0, 2}, 3);

    for (const ClassFigures& figures : report.classes) CHECK(std::isnan(figures.auc));
    CHECK(std::isnan(report.macro_auc));
    CHECK(report.classes[1].correct == 1);
    CHECK(report.classes[2].recall == Approx(1));
    CHECK(report.classes[0].labels == 2);
  }
}

TEST_CASE("reports: errors of a regression", "[inference]") {
  const ErrorReport report = ReportErrors(std::vector<float>{2.5f, 0, 2, 8}, std::vector<float>{3, -0.5f, 2, 7});

  CHECK(report.mean_absolute == Approx(0.5));
  CHECK(report.root_mean_square == Approx(std::sqrt(0.375)));
  CHECK(report.r2 == Approx(0.9486081370449679));  // sklearn.metrics.r2_score's own example
  CHECK(std::isnan(ReportErrors(std::vector<float>{1}, std::vector<float>{1}).r2));
}

}  // namespace lockstep::worker
