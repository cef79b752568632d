// What chief and workers say of a difference between replicas, and of the copies of audited states that workers keep in
// memory so that the way back after it is short (rule 22).
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

// A copy in a worker's memory: its own state at an audit. That the others had the same state, only the chief knows.
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

// Answer to ReturnTo. Done: the copy's digest was verified, and the worker stands there. Else the worker holds what it
// held before, and `message` says why.
struct Returned {
  KeptState state;
  bool done = false;
  std::string message;
  LS_FIELDS(Returned, state, done, message)
};

// To everybody, as soon as two digests of one step differ: what stands at this step of this lineage, and what follows,
// is not to be trusted. A worker tells it in every Hello from then on, so that it outlives the chief that found it.
struct StatesDiffer {
  Lineage lineage;
  uint64_t step = 0;
  LS_FIELDS(StatesDiffer, lineage, step)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_KEPT_STATE_H_
