// Limits of one chief.
//
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_CORE_LIMITS_H_
#define LOCKSTEP_CHIEF_CORE_LIMITS_H_

#include <cstdint>

namespace lockstep::chief {

// The most workers that may be connected, and the most names of former ones that are remembered. Only as many step
// together as the job has logical shards, at most 4,096; the others are spare.
inline constexpr uint32_t kMaxWorkers = 16384;

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LIMITS_H_
