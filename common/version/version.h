// The version that every program prints.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_VERSION_VERSION_H_
#define LOCKSTEP_COMMON_VERSION_VERSION_H_

namespace lockstep {

inline constexpr char kVersion[] = "lockstep 0.1.0";

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_VERSION_VERSION_H_
