// Unix sockets between workers of one host, in place of TCP. Their names are in Linux's abstract namespace, which each
// network namespace has for itself, so workers whose network is separated do not meet here. Both ends must belong to
// the same user.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_HOST_SOCKET_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_HOST_SOCKET_H_

#include <string>

#include "common/storage/descriptor.h"

namespace lockstep::worker {

// A non-blocking socket that listens for workers of this host that know the TCP address "host:port" of this one. Not
// open when the system refuses: then they come over TCP.
Descriptor ListenOnHost(const std::string& address);

// A non-blocking connection to the worker of this host that has this TCP address. Does not block. Not open when no
// worker of this host and user listens under it.
Descriptor ConnectOnHost(const std::string& address);

// Whether `fd` is a Unix socket.
bool IsHostSocket(int fd);
// Whether the process at the other end of the Unix socket belongs to the user of this one.
bool IsOfThisUser(int fd);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_HOST_SOCKET_H_
