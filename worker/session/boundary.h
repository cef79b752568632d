// Decides what the members of a generation do at a boundary: a pure function of the job's policy, the position and the
// reduced control word, so that all ranks decide alike (rules 1, 2 and 7 of the protocol).
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

// The work at a boundary, in the order of the fields: audit, save, then leave and form, then the next slice or step.
struct BoundaryWork {
  bool audit = false;
  // kDue: continue stepping; kHold: wait for its end; kBest: wait until it is published; kEnd, kStop: wait for Done
  std::optional<SnapshotCause> save;
  bool wait_for_earlier = false;  // for a `save` of kDue: first wait until no earlier snapshot is held here
  bool leave = false;             // some rank leaves: all wait here for the chief's decision
  bool form = false;              // the chief wants another generation: all wait here for its decision
  // A rank leaves although not every rank hears the chief: no new generation can be formed, so this one ends here.
  bool part = false;
  bool evaluate = false;  // the next piece of work is a slice, not a step
  // The chief's requests that this boundary serves: by kind their number, 0 for none.
  std::array<uint64_t, kRequestKinds> served{};
};

// The progress of a replica, equal on every rank.
struct ReplicaProgress {
  Position position;
  EvaluationLedger ledger;
  bool published = false;  // the state was just restored from the checkpoint of this position
};

// `word`: the control word of the last step or slice; empty at the begin of a generation. During an evaluation only
// leave and form are served, since only evaluated states are saved. Required saves (at the end, at a stop, of the best
// state so far) always happen. Other saves happen only if every rank hears the chief and is free for a save, or by the
// policy waits until it is.
BoundaryWork PlanBoundary(const TrainingPolicy& policy, const ReplicaProgress& standing, const ControlWord& word);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_BOUNDARY_H_
