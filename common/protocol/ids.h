// The identifiers that fence the protocol: the sender (job, term, incarnation), the set of members that step together
// (generation), and the state (lineage, position, digest).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_IDS_H_
#define LOCKSTEP_COMMON_PROTOCOL_IDS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/protocol/fields.h"

namespace lockstep {

// Claimed exclusively at every start of a chief; 0 means none.
using Term = uint64_t;

// A new one begins whenever a setting that changes bits changes. Opaque, except that where every generation has a
// lineage of its own (LineageOf) it ends with the generation: "<lineage of the job>+<generation>".
using Lineage = std::string;

// Lower-case hex of a SHA-256; empty where no digest was computed.
using Digest = std::string;

// One run of a worker process: random, new at every start. Zero means none.
struct Incarnation {
  uint64_t high = 0;
  uint64_t low = 0;

  bool IsNone() const { return high == 0 && low == 0; }
  std::string ToString() const { return absl::StrFormat("%016x%016x", high, low); }
  auto operator<=>(const Incarnation&) const = default;
  LS_FIELDS(Incarnation, high, low)
};

// One set of members with ranks and one communicator. Ordered by term, then counter; {0, 0} means none. The term is
// the one of the chief that formed it: an adopted generation keeps its name under the next chief.
struct Generation {
  Term term = 0;
  uint64_t counter = 0;

  bool IsNone() const { return term == 0 && counter == 0; }
  std::string ToString() const { return absl::StrCat(term, ".", counter); }
  auto operator<=>(const Generation&) const = default;
  LS_FIELDS(Generation, term, counter)
};

// The lineage of a generation of the job whose own lineage is `job`.
inline Lineage LineageOf(const Lineage& job, const Generation& generation) {
  return absl::StrCat(job, "+", generation.ToString());
}
// The job's own part of a lineage.
inline Lineage JobLineage(const Lineage& lineage) { return lineage.substr(0, lineage.find('+')); }
// The generation that began a lineage; none when the lineage is the job's own.
inline Generation BegunBy(const Lineage& lineage) {
  const size_t plus = lineage.find('+');
  const size_t dot = plus == Lineage::npos ? Lineage::npos : lineage.find('.', plus);
  Generation generation;
  if (dot == Lineage::npos || !absl::SimpleAtoi(lineage.substr(plus + 1, dot - plus - 1), &generation.term) ||
      !absl::SimpleAtoi(lineage.substr(dot + 1), &generation.counter)) {
    return {};
  }
  return generation;
}

// The progress of a replica: `step` updates, and `evaluated_slices` slices of the evaluation that belongs to this step.
struct Position {
  uint64_t step = 0;
  uint64_t evaluated_slices = 0;

  std::string ToString() const {
    return evaluated_slices == 0 ? absl::StrCat("step ", step)
                                 : absl::StrCat("step ", step, " + ", evaluated_slices, " evaluated slices");
  }
  auto operator<=>(const Position&) const = default;
  LS_FIELDS(Position, step, evaluated_slices)
};

// A member of a generation; its rank is its index in the member list.
struct Member {
  Incarnation incarnation;
  std::string name;     // worker-0, worker-1, …
  std::string address;  // where its peers reach it, host:port

  LS_FIELDS(Member, incarnation, name, address)
};

// A state that was or may be saved. Shares are accepted by this name, whichever generation they come from: equal
// digests mean equal bits.
struct SnapshotId {
  Lineage lineage;
  uint64_t step = 0;
  Digest digest;

  std::string ToString() const { return absl::StrCat("step ", step, " (", digest.substr(0, 12), ")"); }
  auto operator<=>(const SnapshotId&) const = default;
  LS_FIELDS(SnapshotId, lineage, step, digest)
};

// What every message to the chief carries.
struct WorkerFence {
  std::string job;  // empty in a first Hello: the worker learns it from Welcome
  Term term = 0;    // the term the worker follows; 0 in a first Hello
  Incarnation incarnation;

  LS_FIELDS(WorkerFence, job, term, incarnation)
};

// What every command of the chief carries.
struct ChiefFence {
  Term term = 0;
  Generation generation;  // none for commands that concern no generation

  LS_FIELDS(ChiefFence, term, generation)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_IDS_H_
