#include "chief/server/evaluation_board.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::chief {

std::string MetricName(Metric metric) {
  switch (metric) {
    case Metric::kLoss:
      return "loss";
    case Metric::kAccuracy:
      return "accuracy";
    case Metric::kTop5:
      return "top5";
    case Metric::kPerplexity:
      return "perplexity";
  }
  return "loss";
}

void EvaluationBoard::GoBackTo(uint64_t step) {
  step_ = std::min(step_, step);
  if (ledger_.step > step) ledger_ = followed_.step <= step ? followed_ : EvaluationLedger();
}

std::string EvaluationBoard::Add(const EvaluationDone& evaluation) {
  EvaluationSums sums;
  for (const SliceResult& slice : evaluation.slices) sums += slice.sums;
  ledger_ = Judge(rule_, ledger_, evaluation.step, sums);
  beyond_five_ = beyond_five_ || sums.top5 < sums.counted;
  const bool classes = sums.counted > 0;
  std::vector<NamedValue> metrics;
  const auto tell = [&](Metric metric, bool applies) {
    if (applies || metric == rule_.metric) metrics.push_back({MetricName(metric), MetricValue(metric, sums)});
  };
  tell(Metric::kLoss, true);
  tell(Metric::kPerplexity, classes && sequences_);
  tell(Metric::kAccuracy, classes);
  tell(Metric::kTop5, classes && beyond_five_);
  std::string line = absl::StrCat("evaluated step ", evaluation.step);
  for (const NamedValue& value : metrics) absl::StrAppendFormat(&line, "  %s %.4f", value.name, value.value);
  if (IsBest(rule_, ledger_, evaluation.step)) absl::StrAppend(&line, "  (best)");
  if (rule_.patience > 0 && ledger_.stale > 0) {
    absl::StrAppend(&line, "  no improvement ", ledger_.stale, "/", rule_.patience);
  }
  // One that is told late, because who held it was away, does not count as the newest.
  if (evaluation.step >= step_) {
    step_ = evaluation.step;
    metrics_ = std::move(metrics);
  }
  return line;
}

}  // namespace lockstep::chief
