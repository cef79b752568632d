#include "common/protocol/evaluation.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace lockstep {
namespace {

constexpr EvaluationRule kLossRule{.id = 7, .metric = Metric::kLoss, .patience = 2};

EvaluationSums Loss(double value) { return {.loss = value * 4, .denominator = 4}; }

// The ledgers after evaluations of steps 10, 20, … with these losses.
std::vector<EvaluationLedger> Judged(const EvaluationRule& rule, const std::vector<double>& losses) {
  std::vector<EvaluationLedger> ledgers;
  EvaluationLedger ledger;
  for (size_t i = 0; i < losses.size(); ++i) {
    ledger = Judge(rule, ledger, 10 * (i + 1), Loss(losses[i]));
    ledgers.push_back(ledger);
  }
  return ledgers;
}

}  // namespace

TEST_CASE("evaluation: metrics are shares of what was counted", "[protocol]") {
  const EvaluationSums sums{.loss = 6, .denominator = 4, .correct = 3, .top5 = 5, .counted = 8};

  CHECK(MetricValue(Metric::kLoss, sums) == 1.5);
  CHECK(MetricValue(Metric::kAccuracy, sums) == 0.375);
  CHECK(MetricValue(Metric::kTop5, sums) == 0.625);
  CHECK(MetricValue(Metric::kPerplexity, sums) == Approx(std::exp(1.5)).epsilon(1e-14));
  CHECK(std::isnan(MetricValue(Metric::kAccuracy, {})));
}

TEST_CASE("evaluation: the best is the first of the lowest losses", "[protocol]") {
  const auto ledgers = Judged(kLossRule, {3, 2, 2, 4});

  CHECK(IsBest(kLossRule, ledgers[0], 10));
  CHECK(IsBest(kLossRule, ledgers[1], 20));
  CHECK_FALSE(IsBest(kLossRule, ledgers[2], 30));
  CHECK(ledgers[3].best_step == 20);
  CHECK(ledgers[3].best_value == 2);
  CHECK(ledgers[3].value == 4);
}

TEST_CASE("evaluation: a higher accuracy is better when the rule says so", "[protocol]") {
  const EvaluationRule rule{.id = 1, .metric = Metric::kAccuracy, .higher_is_better = true};
  const EvaluationLedger low = Judge(rule, {}, 5, {.correct = 1, .counted = 4});

  CHECK(IsBest(rule, Judge(rule, low, 6, {.correct = 2, .counted = 4}), 6));
  CHECK_FALSE(IsBest(rule, Judge(rule, low, 6, {.correct = 0, .counted = 4}), 6));
}

TEST_CASE("evaluation: training ends once `patience` evaluations in a row brought no improvement", "[protocol]") {
  const auto ledgers = Judged(kLossRule, {3, 4, 2, 2, 2.5});

  CHECK_FALSE(EndsEarly(kLossRule, ledgers[1], 20));
  CHECK_FALSE(EndsEarly(kLossRule, ledgers[3], 40));
  CHECK(EndsEarly(kLossRule, ledgers[4], 50));
  // Only where it was decided: who raised the patience goes on.
  CHECK_FALSE(EndsEarly(kLossRule, ledgers[4], 51));
  CHECK_FALSE(EndsEarly({.id = 7, .patience = 3}, ledgers[4], 50));
}

TEST_CASE("evaluation: improvements below min_delta do not count for patience, but for the best", "[protocol]") {
  const EvaluationRule rule{.id = 7, .metric = Metric::kLoss, .patience = 2, .min_delta = 0.5};
  const auto ledgers = Judged(rule, {3, 2.8, 2.6});

  CHECK(IsBest(rule, ledgers[2], 30));
  CHECK(EndsEarly(rule, ledgers[2], 30));
}

TEST_CASE("evaluation: a NaN is never the best, and counts as no improvement", "[protocol]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto ledgers = Judged(kLossRule, {nan, nan, nan, 5});

  CHECK(ledgers[0].best_step == 0);
  CHECK(EndsEarly(kLossRule, ledgers[2], 30));
  CHECK(IsBest(kLossRule, ledgers[3], 40));
  CHECK(ledgers[3].stale == 0);
}

TEST_CASE("evaluation: a state whose loss is NaN is not the best, whatever its accuracy", "[protocol]") {
  const EvaluationRule rule{.id = 1, .metric = Metric::kAccuracy, .higher_is_better = true};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const EvaluationLedger first = Judge(rule, {}, 5, {.loss = nan, .denominator = 4, .correct = 3, .counted = 4});

  CHECK(first.best_step == 0);
  CHECK(IsBest(rule, Judge(rule, first, 6, {.loss = 9, .denominator = 4, .correct = 1, .counted = 4}), 6));
}

TEST_CASE("evaluation: replicas that came to the same NaN hold the same ledger", "[protocol]") {
  const EvaluationLedger ledger = Judge({.id = 1, .metric = Metric::kAccuracy}, {}, 5, {});
  REQUIRE(std::isnan(ledger.value));
  CHECK(ledger == EvaluationLedger(ledger));

  EvaluationLedger other = ledger;
  other.value = 0;
  CHECK_FALSE(ledger == other);
}

TEST_CASE("evaluation: another rule begins a new history, the same evaluation twice is one", "[protocol]") {
  const auto ledgers = Judged(kLossRule, {1, 2});
  const EvaluationRule other{.id = 8, .metric = Metric::kLoss};

  CHECK(Judge(kLossRule, ledgers[1], 20, Loss(9)) == ledgers[1]);
  CHECK_FALSE(IsBest(other, ledgers[0], 10));
  CHECK(IsBest(other, Judge(other, ledgers[1], 30, Loss(9)), 30));
}

}  // namespace lockstep
