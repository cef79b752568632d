// What a broken generation tells about pairs of workers: members name each other as the cause (rule 11), and what they
// say is weighed once all of them are at rest or given up.
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
  Incarnation suspect;  // the cause of a failure, as it says; itself, where it failed by itself
  bool while_forming = false;
};

// A pair of workers that is to prove itself again.
struct Suspicion {
  Incarnation one;
  Incarnation other;  // the same: it could not do its part itself
  bool while_forming = false;
};

struct BreakFinding {
  std::vector<Suspicion> suspicions;  // one for each pair, ascending
  bool all_in_doubt = false;          // it did not form, nobody died, and nobody was named
};

// `lost`: a member is gone, and its death explains what the others say of each other. `formed`: all had synchronised.
BreakFinding Weigh(const std::vector<Accusation>& accusations, Roster& roster, bool lost, bool formed);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_BREAK_FINDING_H_
