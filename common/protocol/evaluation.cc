#include "common/protocol/evaluation.h"

#include <cmath>
#include <limits>

#include "common/math/math.h"

namespace lockstep {
namespace {

// Is `value` better than `than` by more than `margin`? A NaN is never better, and everything else beats one.
bool Better(const EvaluationRule& rule, double value, double than, double margin) {
  if (std::isnan(value)) return false;
  if (std::isnan(than)) return true;
  return rule.higher_is_better ? value > than + margin : value < than - margin;
}

// Is `value` better than the best so far by more than the rule's share of it?
bool Improves(const EvaluationRule& rule, double value, double best) {
  return Better(rule, value, best, std::abs(best) * rule.plateau.threshold);
}

// What the newest value does to the learning rate.
void JudgeRate(const EvaluationRule& rule, bool first, EvaluationLedger& ledger) {
  if (first || Improves(rule, ledger.value, ledger.rate_reference)) {
    ledger.rate_reference = ledger.value;
    ledger.rate_stale = 0;
  } else {
    ++ledger.rate_stale;
  }
  if (ledger.rate_cooldown > 0) {
    --ledger.rate_cooldown;
    ledger.rate_stale = 0;
  }
  if (ledger.rate_stale <= rule.plateau.patience) return;
  ++ledger.rate_cuts;
  ledger.rate_stale = 0;
  ledger.rate_cooldown = rule.plateau.cooldown;
}

}  // namespace

EvaluationSums& operator+=(EvaluationSums& sums, const EvaluationSums& more) {
  sums.loss += more.loss;
  sums.denominator += more.denominator;
  sums.correct += more.correct;
  sums.top5 += more.top5;
  sums.counted += more.counted;
  return sums;
}

double MetricValue(Metric metric, const EvaluationSums& sums) {
  const auto share = [](double part, double whole) {
    const double value = part / whole;
    return whole > 0 && !std::isnan(value) ? value : std::numeric_limits<double>::quiet_NaN();  // without a sign
  };
  switch (metric) {
    case Metric::kLoss:
      return share(sums.loss, sums.denominator);
    case Metric::kAccuracy:
      return share(sums.correct, sums.counted);
    case Metric::kTop5:
      return share(sums.top5, sums.counted);
    case Metric::kPerplexity:
      return Exp(share(sums.loss, sums.denominator));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

EvaluationLedger Judge(const EvaluationRule& rule, const EvaluationLedger& before, uint64_t step,
                       const EvaluationSums& sums) {
  EvaluationLedger ledger = before;
  // The rate stays where it is.
  if (ledger.rule != rule.id) ledger = EvaluationLedger{.rule = rule.id, .rate_cuts = before.rate_cuts};
  if (step <= ledger.step) return ledger;
  const bool first = ledger.step == 0;
  ledger.step = step;
  // A state whose loss is no number is no good one, whatever share of its labels scores highest.
  ledger.value = std::isnan(sums.loss) ? sums.loss : MetricValue(rule.metric, sums);
  const bool none_is_best = ledger.best_step == 0 && !std::isnan(ledger.value);
  if (none_is_best || Better(rule, ledger.value, ledger.best_value, 0)) {
    ledger.best_step = step;
    ledger.best_value = ledger.value;
  }
  if (first || Better(rule, ledger.value, ledger.reference, rule.min_delta)) {
    ledger.reference = ledger.value;
    ledger.stale = 0;
  } else {
    ++ledger.stale;
  }
  if (rule.plateau.cuts) JudgeRate(rule, first, ledger);
  return ledger;
}

bool IsBest(const EvaluationRule& rule, const EvaluationLedger& ledger, uint64_t step) {
  return ledger.rule == rule.id && ledger.step == step && ledger.best_step == step && step != 0;
}

bool EndsEarly(const EvaluationRule& rule, const EvaluationLedger& ledger, uint64_t step) {
  return rule.patience != 0 && ledger.rule == rule.id && ledger.step == step && ledger.stale >= rule.patience;
}

}  // namespace lockstep
