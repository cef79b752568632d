// Queries about the states that workers at rest hold. Only such a state can be a source (rule 9); what a stepping
// worker holds is never certain.
//
// Threading: thread-compatible (pure functions).
#ifndef LOCKSTEP_CHIEF_CORE_STATES_AT_REST_H_
#define LOCKSTEP_CHIEF_CORE_STATES_AT_REST_H_

#include <vector>

#include "chief/core/history.h"
#include "chief/core/roster.h"

namespace lockstep::chief {

// Whether the worker is at rest with a state that belongs to the job's history.
inline bool HoldsCurrent(const History& history, const Worker& worker) {
  return worker.AtRest() && worker.held.has_value() &&
         history.Includes(worker.held->lineage, worker.held->position.step);
}

// The first of `workers` that holds the highest position; null if none holds a state.
inline Worker* HoldsMost(const History& history, const std::vector<Worker*>& workers) {
  Worker* best = nullptr;
  for (Worker* worker : workers) {
    if (!HoldsCurrent(history, *worker)) continue;
    if (best == nullptr || worker->held->position > best->held->position) best = worker;
  }
  return best;
}

// The worker with the highest position, of all that were not dismissed; null if none holds a state.
inline Worker* BestAtRest(const History& history, const Roster& roster, bool leavers_too) {
  std::vector<Worker*> staying = roster.InOrder();
  std::erase_if(staying, [&](const Worker* worker) { return worker->dismissed || (worker->leaving && !leavers_too); });
  return HoldsMost(history, staying);
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_STATES_AT_REST_H_
