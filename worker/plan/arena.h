// Places values with known lifetimes into one block of memory, so that values that are never alive at the same time
// share bytes.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_PLAN_ARENA_H_
#define LOCKSTEP_WORKER_PLAN_ARENA_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep::worker {

struct ArenaRequest {
  int64_t bytes = 0;
  // Alive during steps [first, last], inclusive.
  int first = 0;
  int last = 0;
};

struct ArenaLayout {
  std::vector<int64_t> offsets;  // one per request, multiples of the alignment
  int64_t bytes = 0;             // of the whole arena
  // The largest sum of bytes alive in one step, each rounded up to the alignment: no arena can be smaller.
  int64_t lower_bound = 0;
};

// Places the largest request first, each at the lowest offset that is free during its lifetime. Deterministic.
ArenaLayout PlaceInArena(absl::Span<const ArenaRequest> requests, int64_t alignment);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_ARENA_H_
