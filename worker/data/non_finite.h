// Finds NaN and infinity in data.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_NON_FINITE_H_
#define LOCKSTEP_WORKER_DATA_NON_FINITE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "worker/data/stored_data.h"

namespace lockstep::worker {

struct NonFinite {
  int64_t count = 0;
  bool any_nan = false;  // false: only infinities
  std::string first;     // "x.npy: byte 196: element 17 is nan"
};

// Counts the non-finite elements of an array; nullopt when there are none.
std::optional<NonFinite> FindNonFinite(const StoredArray& array);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_NON_FINITE_H_
