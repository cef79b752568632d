// What a broken generation says about pairs of workers. Members accuse each other of causing the break (rule 11); their
// accusations are weighed once all members are at rest or given up.
//
// Threading: thread-compatible (a pure function).
#ifndef LOCKSTEP_CHIEF_CORE_BREAK_FINDING_H_
#define LOCKSTEP_CHIEF_CORE_BREAK_FINDING_H_

#include <vector>

#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

struct Accusation {
  Incarnation by;
  Incarnation suspect;  // the cause of the failure according to `by`; equal to `by` if its own part failed
  bool while_forming = false;
};

// A pair of workers that must pass a connection test again.
struct Suspicion {
  Incarnation one;
  Incarnation other;  // equal to `one` if that worker's own part failed
  bool while_forming = false;
};

struct BreakFinding {
  std::vector<Suspicion> suspicions;  // at most one for each pair, ascending
  bool all_in_doubt = false;          // the generation did not form, no member died, and no member was named
};

// `lost`: a member died, which explains the accusations of the others. `formed`: all members had synchronised.
BreakFinding Weigh(const std::vector<Accusation>& accusations, Roster& roster, bool lost, bool formed);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_BREAK_FINDING_H_
