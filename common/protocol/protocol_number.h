// Tells programs apart that do not understand each other.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_PROTOCOL_NUMBER_H_
#define LOCKSTEP_COMMON_PROTOCOL_PROTOCOL_NUMBER_H_

#include <cstdint>

namespace lockstep {

// What a chief and its workers must both speak. Counted up with every change that two programs could take for something
// else: of messages, of the layout of shares, of digests, of what workers send one another. Programs from before it was
// told say 0.
inline constexpr uint64_t kProtocol = 4;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_PROTOCOL_NUMBER_H_
