// What workers at rest hold of the job's state. Only such a state is a source (rule 9): what a worker holds that may be
// stepping is nobody's to know.
//
// Threading: thread-compatible (pure functions).
#ifndef LOCKSTEP_CHIEF_CORE_STATES_AT_REST_H_
#define LOCKSTEP_CHIEF_CORE_STATES_AT_REST_H_

#include <vector>

#include "chief/core/history.h"
#include "chief/core/roster.h"

namespace lockstep::chief {

// Whether it holds a state that belongs to the job's history.
inline bool HoldsCurrent(const History& history, const Worker& worker) {
  return worker.AtRest() && worker.held.has_value() &&
         history.Includes(worker.held->lineage, worker.held->position.step);
}

// The first of `workers` that holds the highest position; null when none holds any.
inline Worker* HoldsMost(const History& history, const std::vector<Worker*>& workers) {
  Worker* best = nullptr;
  for (Worker* worker : workers) {
    if (!HoldsCurrent(history, *worker)) continue;
    if (best == nullptr || worker->held->position > best->held->position) best = worker;
  }
  return best;
}

// Of all that were not dismissed, the one that holds most; null when none holds any.
inline Worker* BestAtRest(const History& history, const Roster& roster, bool leavers_too) {
  std::vector<Worker*> staying = roster.InOrder();
  std::erase_if(staying, [&](const Worker* worker) { return worker->dismissed || (worker->leaving && !leavers_too); });
  return HoldsMost(history, staying);
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_STATES_AT_REST_H_
