// Sockets that listen for a server of this machine, or the question whether there could be such.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_LISTEN_H_
#define LOCKSTEP_COMMON_NET_LISTEN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/net/rpc.h"
#include "common/storage/descriptor.h"

namespace lockstep {

// FailedPrecondition, with the remedy: the port of `wanted` is in use, or its host is not of this machine.
absl::Status CannotListen(const std::string& wanted);

// They take connections to every address of a host, all at one port, and do not block in accept.
struct Listeners {
  std::vector<Descriptor> sockets;
  int port = 0;
};

// Listens at `place`; port 0: at any free one. Small writes on the connections go out at once. CannotListen where none
// of the host's addresses is free. Blocks while the host is resolved.
absl::StatusOr<Listeners> ListenAt(const HostPort& place);

// OK when a server could listen at `wanted`, HOST:PORT. Listens and stops at once. InvalidArgument: no such address.
absl::Status CheckListen(const std::string& wanted);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_LISTEN_H_
