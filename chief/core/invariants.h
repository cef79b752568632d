// Conditions that must hold after every event. The coordinator checks them in production too. A violation is a defect
// of the chief; it ends the process before any action of that event is carried out, so that a chief in a wrong state
// publishes nothing.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_CHIEF_CORE_INVARIANTS_H_
#define LOCKSTEP_CHIEF_CORE_INVARIANTS_H_

#include <string>
#include <vector>

#include "chief/core/actions.h"
#include "chief/core/drains.h"
#include "chief/core/history.h"
#include "chief/core/roster.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

// The coordinator after an event.
struct InvariantView {
  bool in_full = true;  // else checks whose cost grows with the number of workers are skipped
  bool runs = false;    // a generation steps
  Generation current;
  const std::vector<Member>& members;  // of it
  Roster& roster;
  const History& history;
  bool same_job_lineage = true;  // the event did not begin a new one
  const Drains& drains;
  const SnapshotId& published_before;  // before the event
  const SnapshotId& published;
  const std::vector<Action>& actions;        // of the event
  const std::vector<std::string>& left_out;  // hosts that the event excluded
};

// Names the condition that does not hold; empty if all of these hold.
//   * One session and one name belong to one worker.
//   * While a generation steps, all its members are connected and run it, and every worker that runs another one was
//     told that it is over.
//   * The published step never decreases, except by a repair, which begins another lineage. What is about to be
//     published is newer or equal to it, and part of the history.
//   * The only host of a job is never left out.
//   * Every worker that a drain names is leaving.
std::string BrokenInvariant(const InvariantView& view);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_INVARIANTS_H_
