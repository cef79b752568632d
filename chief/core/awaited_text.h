// What people are told of a job that does not step: what it waits for, and why. Nothing is decided by it.
//
// Threading: thread-compatible (pure functions).
#ifndef LOCKSTEP_CHIEF_CORE_AWAITED_TEXT_H_
#define LOCKSTEP_CHIEF_CORE_AWAITED_TEXT_H_

#include <string>
#include <vector>

#include "chief/core/coordinator_view.h"
#include "chief/core/core_context.h"
#include "chief/core/departures.h"
#include "chief/core/generation_life.h"
#include "chief/core/reachability.h"
#include "chief/core/stragglers.h"

namespace lockstep::chief {

struct AwaitedFacts {
  const CoreContext& context;
  const GenerationLife& life;
  const Reachability& pairs;
  const Departures& gone;
  std::string drained;  // DrainDesk::Text
};

// The workers that are missing, and why those that are here do not form a generation yet.
std::string AwaitedText(const AwaitedFacts& facts);
// For people, after "waiting for ": in any phase.
std::string WaitingText(const AwaitedFacts& facts);
// One line for each worker that is here.
std::vector<CoordinatorView::WorkerLine> WorkerLines(const Roster& roster, const GenerationLife& life,
                                                     const Stragglers& stragglers);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AWAITED_TEXT_H_
