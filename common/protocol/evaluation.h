// The results of evaluations and the decisions that follow from them: whether a state is the best so far, and whether
// training ends. Every replica decides the same, from sums that are exact over the workers (rules 26 and 27): each
// member of a generation holds the same ledger, a newcomer receives it with the state, and each manifest carries it.
//
// The ledger is not part of the state's digest: the same step may be saved before its evaluation ended and after it.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_EVALUATION_H_
#define LOCKSTEP_COMMON_PROTOCOL_EVALUATION_H_

#include <cstdint>

#include "common/protocol/fields.h"

namespace lockstep {

// Sums over the samples of an evaluation set, or of a part of it.
struct EvaluationSums {
  double loss = 0;
  double denominator = 0;  // what the loss is divided by
  double correct = 0;      // labels that score highest; 0 without classes
  double top5 = 0;         // labels among the five that score highest
  double counted = 0;      // labels considered for `correct` and `top5`
  LS_FIELDS(EvaluationSums, loss, denominator, correct, top5, counted)
};

EvaluationSums& operator+=(EvaluationSums& sums, const EvaluationSums& more);

enum class Metric : uint8_t { kLoss = 0, kAccuracy = 1, kTop5 = 2, kPerplexity = 3 };

// The value of the metric; NaN when no sample was counted. kPerplexity is e^(mean loss).
double MetricValue(Metric metric, const EvaluationSums& sums);

// When the learning rate drops because evaluations no longer improve (`train.schedule.name: plateau`), as in
// torch.optim.lr_scheduler.ReduceLROnPlateau with a relative threshold. No drop before patience + 1 evaluations.
struct PlateauRule {
  bool cuts = false;
  uint64_t patience = 0;  // evaluations without improvement that are tolerated
  double threshold = 0;   // an improvement exceeds this fraction of the best value
  uint64_t cooldown = 0;  // evaluations after a drop that do not count
  LS_FIELDS(PlateauRule, cuts, patience, threshold, cooldown)
};

// What the job file says about evaluations.
struct EvaluationRule {
  uint64_t id = 0;  // hash of metric, direction and data; values of different ids are not compared
  Metric metric = Metric::kLoss;
  bool higher_is_better = false;
  bool keep_best = false;  // members wait until the best state so far is published
  uint64_t patience = 0;   // evaluations without improvement after which the job ends; 0: never
  double min_delta = 0;    // the least improvement, for `patience`
  PlateauRule plateau;
  LS_FIELDS(EvaluationRule, id, metric, higher_is_better, keep_best, patience, min_delta, plateau)
};

// The history of the evaluations of a run, as far as decisions need it.
struct EvaluationLedger {
  uint64_t rule = 0;       // EvaluationRule::id
  uint64_t step = 0;       // of the newest evaluation; 0: none yet
  double value = 0;        // its metric; NaN where the loss is
  uint64_t best_step = 0;  // 0: no value was a number
  double best_value = 0;
  double reference = 0;  // the value that the next improvement is measured against
  uint64_t stale = 0;    // evaluations since that improvement
  // For PlateauRule: how often the rate dropped, the best value so far, evaluations since it, and evaluations of the
  // cooldown that remain.
  uint64_t rate_cuts = 0;
  double rate_reference = 0;
  uint64_t rate_stale = 0;
  uint64_t rate_cooldown = 0;
  LS_FIELDS(EvaluationLedger, rule, step, value, best_step, best_value, reference, stale, rate_cuts, rate_reference,
            rate_stale, rate_cooldown)
};

// Returns the ledger after the evaluation of `step`. Steps only grow: a step that the ledger has already counted
// changes nothing.
EvaluationLedger Judge(const EvaluationRule& rule, const EvaluationLedger& before, uint64_t step,
                       const EvaluationSums& sums);

// Whether the state at `step` is the best so far.
bool IsBest(const EvaluationRule& rule, const EvaluationLedger& ledger, uint64_t step);
// Whether training ends at `step` because evaluations no longer improve.
bool EndsEarly(const EvaluationRule& rule, const EvaluationLedger& ledger, uint64_t step);

// The part of a replica's progress that is sent along with its state: the ledger, and the sums of the slices of the
// current evaluation that the position counts. Scalars only, so that it can be copied between replicas as bytes.
struct EvaluationProgress {
  EvaluationLedger ledger;
  EvaluationSums sums;
  LS_FIELDS(EvaluationProgress, ledger, sums)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_EVALUATION_H_
