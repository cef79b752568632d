// TCP sockets over IPv4, by "host:port" or by host: made, connected and waited for.
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

// Unavailable, with what errno says.
absl::Status SystemError(const std::string& what);

// InvalidArgument: `address` is not host:port. Unavailable: the host cannot be resolved. Blocks while it is resolved.
absl::StatusOr<sockaddr_in> ResolveAddress(const std::string& address);

bool IsLoopback(const sockaddr_in& address);  // 127.0.0.0/8

// A socket that listens on `host` at a free port; does not block in accept.
struct Listening {
  Descriptor socket;
  uint16_t port = 0;
};
absl::StatusOr<Listening> ListenOn(const std::string& host);

// Waits for `events` (poll's) on `fd`. DeadlineExceeded: nothing came before `until` (of SteadyNow). Cancelled: the
// descriptor `cancel` became readable or was closed at its other end first; -1: nothing cancels. `what` begins
// messages.
absl::Status AwaitReady(int fd, short events, int cancel, absl::Time until, const std::string& what);

// A connected socket that does not block and sends small writes at once. Errors as AwaitReady, and Unavailable.
absl::StatusOr<Descriptor> ConnectTo(const sockaddr_in& target, int cancel, absl::Time until, const std::string& what);

// What both ends of a connection between workers set.
void SetForPeers(int fd);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_TCP_H_
