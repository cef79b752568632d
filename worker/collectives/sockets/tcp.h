// Helpers for TCP sockets over IPv4: resolve, listen, connect, wait.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_TCP_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_TCP_H_

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/storage/descriptor.h"

namespace lockstep::worker {

// Unavailable, with `what` and the text of errno.
absl::Status SystemError(const std::string& what);

// Resolves "host:port". InvalidArgument: `address` has another form. Unavailable: the host cannot be resolved. Blocks.
absl::StatusOr<sockaddr_in> ResolveAddress(const std::string& address);

bool IsLoopback(const sockaddr_in& address);  // 127.0.0.0/8

// A non-blocking socket that listens on `host` at a free port.
struct Listening {
  Descriptor socket;
  uint16_t port = 0;
};
absl::StatusOr<Listening> ListenOn(const std::string& host);

// Blocks until poll reports one of `events` on `fd`. DeadlineExceeded at `until` (on SteadyNow's clock). Cancelled: the
// descriptor `cancel` became readable or its other end was closed first; -1: nothing cancels. `what` begins messages.
absl::Status AwaitReady(int fd, short events, int cancel, absl::Time until, const std::string& what);

// Connects a non-blocking socket with TCP_NODELAY. Blocks until connected. Errors of AwaitReady, and Unavailable.
absl::StatusOr<Descriptor> ConnectTo(const sockaddr_in& target, int cancel, absl::Time until, const std::string& what);

// Sets the socket options of connections between workers.
void SetForPeers(int fd);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_TCP_H_
