// What people see of evaluations: the metrics of the newest one, which was the best, and how long none has improved.
// Nothing is decided here: what the ranks decide by is the ledger that comes with their snapshots.
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
  // `before`: of the checkpoint that the job goes on from. `sequences`: labels are sequences, whose perplexity is told.
  EvaluationBoard(const EvaluationRule& rule, const EvaluationLedger& before, bool sequences)
      : rule_(rule), sequences_(sequences) {
    if (before.rule == rule.id) ledger_ = followed_ = before;
  }

  // Takes an evaluation in and returns the line that tells of it.
  std::string Add(const EvaluationDone& evaluation);

  // Takes over what came with a snapshot: it counts also those evaluations that nobody could tell of.
  void Follow(const EvaluationLedger& ledger) {
    if (ledger.rule == rule_.id && ledger.step >= ledger_.step) ledger_ = followed_ = ledger;
  }

  // What was told of later steps does not count: they are computed again, and may give other results.
  void GoBackTo(uint64_t step);

  // The job goes on from a state with this ledger, whatever was told since.
  void StartAgain(const EvaluationLedger& ledger) {
    ledger_ = followed_ = ledger.rule == rule_.id ? ledger : EvaluationLedger();
    step_ = std::min(step_, ledger_.step);
  }

  // 0: none yet.
  uint64_t step() const { return step_; }
  const std::vector<NamedValue>& metrics() const { return metrics_; }
  // The metric that decides, and where it was best (step 0: nowhere yet).
  std::string metric() const { return MetricName(rule_.metric); }
  uint64_t best_step() const { return ledger_.best_step; }
  double best_value() const { return ledger_.best_value; }
  bool ended_early() const { return EndsEarly(rule_, ledger_, ledger_.step); }

 private:
  const EvaluationRule rule_;
  const bool sequences_;
  bool beyond_five_ = false;  // some label was not among the five highest: there are more than five classes
  EvaluationLedger ledger_;
  EvaluationLedger followed_;  // the newest that came with a snapshot
  uint64_t step_ = 0;
  std::vector<NamedValue> metrics_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_EVALUATION_BOARD_H_
