// Whether a server of this machine could listen at an address.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_LISTEN_H_
#define LOCKSTEP_COMMON_NET_LISTEN_H_

#include <string>

#include "absl/status/status.h"

namespace lockstep {

// FailedPrecondition, with the remedy: the port of `wanted` is in use, or its host is not of this machine.
absl::Status CannotListen(const std::string& wanted);

// OK when a server could listen at `wanted`, HOST:PORT. Listens and stops at once. InvalidArgument: no such address.
absl::Status CheckListen(const std::string& wanted);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_LISTEN_H_
