// Opens listening sockets for a server of this machine, or checks whether they could be opened.
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

// The error when nothing can listen at `wanted`: FailedPrecondition, with the remedy. Its port is in use, or its host
// is not of this machine.
absl::Status CannotListen(const std::string& wanted);

// Sockets for every address of a host, all at one port. Their accept does not block.
struct Listeners {
  std::vector<Descriptor> sockets;
  int port = 0;
};

// Listens at `place`; port 0: at any free one. Connections have TCP_NODELAY. The error of CannotListen when none of the
// host's addresses is free. Blocks while the host is resolved.
absl::StatusOr<Listeners> ListenAt(const HostPort& place);

// OK when a server could listen at `wanted`, HOST:PORT. Listens briefly. InvalidArgument when `wanted` is no address.
absl::Status CheckListen(const std::string& wanted);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_LISTEN_H_
