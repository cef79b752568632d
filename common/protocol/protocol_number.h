// The protocol number, by which incompatible programs recognise each other.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_PROTOCOL_NUMBER_H_
#define LOCKSTEP_COMMON_PROTOCOL_PROTOCOL_NUMBER_H_

#include <cstdint>

namespace lockstep {

// A chief and its workers must have the same number. It increases with every change that two programs could interpret
// differently: of messages, of the layout of shares, of digests, of the data that workers exchange. 0 stands for a
// program that sends no number.
inline constexpr uint64_t kProtocol = 4;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_PROTOCOL_NUMBER_H_
