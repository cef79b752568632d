// Numbers below a limit from random bits.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_RANDOM_BELOW_H_
#define LOCKSTEP_COMMON_RANDOM_BELOW_H_

#include <cstdint>

namespace lockstep {

// In [0, count), from 32 random bits. REQUIRES: 0 < count <= 2^31.
inline int64_t Below(uint32_t bits, int64_t count) {
  return static_cast<int64_t>((uint64_t{bits} * static_cast<uint64_t>(count)) >> 32);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RANDOM_BELOW_H_
