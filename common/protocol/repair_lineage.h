// The names of the lineages that audits begin. When replicas differ, the job goes back to a state that all of them
// agreed on and begins another lineage there: "<the job's first lineage>~<number of the repair>". States computed
// before the repair keep the old name, so that they are not taken for a part of the new history. A generation's own
// part follows: "3f00~2+7.1" (LineageOf of ids.h).
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_REPAIR_LINEAGE_H_
#define LOCKSTEP_COMMON_PROTOCOL_REPAIR_LINEAGE_H_

#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/protocol/ids.h"

namespace lockstep {

// The job's lineage before its first repair.
inline Lineage FirstLineage(const Lineage& lineage) { return lineage.substr(0, lineage.find_first_of("~+")); }

// How many repairs led to this lineage; 0 also when the name is malformed.
inline uint64_t RepairsOf(const Lineage& lineage) {
  const Lineage job = JobLineage(lineage);
  const size_t mark = job.find('~');
  uint64_t number = 0;
  return mark != Lineage::npos && absl::SimpleAtoi(job.substr(mark + 1), &number) ? number : 0;
}

// The lineage that the next repair of `lineage` begins.
inline Lineage RepairedLineage(const Lineage& lineage) {
  return absl::StrCat(FirstLineage(lineage), "~", RepairsOf(lineage) + 1);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_REPAIR_LINEAGE_H_
