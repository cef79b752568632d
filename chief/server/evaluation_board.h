// What people see of evaluations: the metrics of the newest one, the best one, and how many in a row did not improve.
// No decision depends on it: ranks decide by the ledger that comes with their snapshots.
//
// Threading: thread-compatible; owned by Progress.
#ifndef LOCKSTEP_CHIEF_SERVER_EVALUATION_BOARD_H_
#define LOCKSTEP_CHIEF_SERVER_EVALUATION_BOARD_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "chief/core/actions.h"
#include "common/protocol/evaluation.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

// "loss", "accuracy", "top5" or "perplexity".
std::string MetricName(Metric metric);

class EvaluationBoard {
 public:
  // `before`: the ledger of the checkpoint from which the job continues. `sequences`: labels are sequences, so
  // perplexity is shown.
  EvaluationBoard(const EvaluationRule& rule, const EvaluationLedger& before, bool sequences)
      : rule_(rule), sequences_(sequences) {
    if (before.rule == rule.id) ledger_ = followed_ = before;
  }

  // Adds an evaluation and returns the line that reports it.
  std::string Add(const EvaluationDone& evaluation);

  // Adopts the ledger of a snapshot, which also counts evaluations that nobody could report.
  void Follow(const EvaluationLedger& ledger) {
    if (ledger.rule == rule_.id && ledger.step >= ledger_.step) ledger_ = followed_ = ledger;
  }

  // Drops evaluations of steps after `step`: they are computed again and may have other results.
  void GoBackTo(uint64_t step);

  // The job continues from a state with this ledger, whatever was reported since.
  void StartAgain(const EvaluationLedger& ledger) {
    ledger_ = followed_ = ledger.rule == rule_.id ? ledger : EvaluationLedger();
    step_ = std::min(step_, ledger_.step);
  }

  // The step of the newest evaluation; 0: none yet.
  uint64_t step() const { return step_; }
  const std::vector<NamedValue>& metrics() const { return metrics_; }
  // The deciding metric, and the step of its best value (0: none yet).
  std::string metric() const { return MetricName(rule_.metric); }
  uint64_t best_step() const { return ledger_.best_step; }
  double best_value() const { return ledger_.best_value; }
  bool ended_early() const { return EndsEarly(rule_, ledger_, ledger_.step); }

 private:
  const EvaluationRule rule_;
  const bool sequences_;
  bool beyond_five_ = false;  // some label was not among the five best classes, so there are more than five
  EvaluationLedger ledger_;
  EvaluationLedger followed_;  // the newest ledger that came with a snapshot
  uint64_t step_ = 0;
  std::vector<NamedValue> metrics_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_EVALUATION_BOARD_H_
