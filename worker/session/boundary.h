// What the members of a generation do at a boundary: a pure function of the job's policy, the position and the reduced
// control word, so that all ranks decide alike (rules 1, 2 and 7 of the protocol).
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_SESSION_BOUNDARY_H_
#define LOCKSTEP_WORKER_SESSION_BOUNDARY_H_

#include <array>
#include <cstdint>
#include <optional>

#include "common/protocol/control.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::worker {

// Served in the order of the fields: audit, save, then leave and form, then the next slice or step.
struct BoundaryWork {
  bool audit = false;
  // kDue: step on meanwhile; kHold: wait for its end; kBest: wait until it is published; kEnd, kStop: wait for Done
  std::optional<SnapshotCause> save;
  bool wait_for_earlier = false;  // before `save`, which is kDue: until no earlier snapshot is held here
  bool leave = false;             // some rank leaves: all wait here for what the chief makes of it
  bool form = false;              // the chief wants another generation: likewise
  // A leaver asked although not every rank hears the chief: nobody can form anew, so this generation ends here.
  bool part = false;
  bool evaluate = false;  // the next piece of work is a slice, not a step
  // Requests of the chief that this boundary serves, by number; 0 where none is.
  std::array<uint64_t, kRequestKinds> served{};
};

// Where a replica stands, equal on every rank.
struct Standing {
  Position position;
  EvaluationLedger ledger;
  bool published = false;  // it was just restored from the checkpoint of this position
};

// `word` is the one that the last step or slice ended with; an empty word where the generation begins. While an
// evaluation is under way only leave and form are served: a saved state is an evaluated one. What must be saved (end,
// stop, the best state so far) is saved in any case, every other save only if each rank hears the chief, and is free
// for it or, by the policy, waits until it is.
BoundaryWork PlanBoundary(const TrainingPolicy& policy, const Standing& standing, const ControlWord& word);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_BOUNDARY_H_
