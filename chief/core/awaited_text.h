// Texts for people about a job that does not step: what it waits for, and why. No decision depends on them.
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

// Names the workers that are missing, and says why those that are connected do not form a generation yet.
std::string AwaitedText(const AwaitedFacts& facts);
// Completes the sentence "waiting for …", whatever the phase.
std::string WaitingText(const AwaitedFacts& facts);
// One line for each connected worker.
std::vector<CoordinatorView::WorkerLine> WorkerLines(const Roster& roster, const GenerationLife& life,
                                                     const Stragglers& stragglers);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AWAITED_TEXT_H_
