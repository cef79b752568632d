// What must hold after every event, whatever happened: checked by the coordinator in production too. A violation is a
// defect of the chief, and ends it before any of the event's actions is carried out, so that nothing is published by a
// chief that is wrong about itself.
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
  bool in_full = true;  // else nothing is looked at whose cost grows with the number of workers
  bool runs = false;    // a generation steps
  Generation current;
  const std::vector<Member>& members;  // of it
  Roster& roster;
  const History& history;
  bool same_job_lineage = true;  // the event began no other one
  const Drains& drains;
  const SnapshotId& published_before;  // before the event
  const SnapshotId& published;
  const std::vector<Action>& actions;        // of the event
  const std::vector<std::string>& left_out;  // hosts, by the event
};

// Which of these does not hold; empty when all do.
//   * One session and one name belong to one worker.
//   * While a generation steps, all its members are connected and run it, and whoever runs another one was told that
//     it is over.
//   * What is published never goes back, but by a repair, which begins another lineage. What is to be published is
//   newer, or the same once more, and part of the
//     history.
//   * The only host of a job is never left out.
//   * Whoever a drain names is on its way out.
std::string BrokenInvariant(const InvariantView& view);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_INVARIANTS_H_
