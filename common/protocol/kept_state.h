// The messages about a difference between replicas, and about the copies of audited states that workers keep in memory
// for a fast return after one (rule 22).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_KEPT_STATE_H_
#define LOCKSTEP_COMMON_PROTOCOL_KEPT_STATE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"

namespace lockstep {

// The newest copy, and the one before it: the newest may be the one that turns out to differ.
inline constexpr size_t kMaxKeptStates = 2;

// A copy in a worker's memory: its own state at an audit. Only the chief knows whether the other replicas had the same
// state.
struct KeptState {
  Lineage lineage;
  Position position;
  Digest digest;

  std::string ToString() const { return absl::StrCat(position.ToString(), " (", digest.substr(0, 12), ")"); }
  LS_FIELDS(KeptState, lineage, position, digest)
};

// To a worker at rest: this copy becomes its state again, as a state of `lineage`. Answered by Returned.
struct ReturnTo {
  KeptState state;
  Lineage lineage;
  LS_FIELDS(ReturnTo, state, lineage)
};

// Answer to ReturnTo. With `done` the copy's digest was verified and the copy is the worker's state; else the worker
// keeps the state that it had, and `message` says why.
struct Returned {
  KeptState state;
  bool done = false;
  std::string message;
  LS_FIELDS(Returned, state, done, message)
};

// Sent to every worker as soon as two digests of one step differ: states at this step of this lineage and after it are
// not to be trusted. A worker repeats it in every Hello from then on, so that it outlives the chief that found the
// difference.
struct StatesDiffer {
  Lineage lineage;
  uint64_t step = 0;
  LS_FIELDS(StatesDiffer, lineage, step)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_KEPT_STATE_H_
