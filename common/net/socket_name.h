// The other end of a connection, for people.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_SOCKET_NAME_H_
#define LOCKSTEP_COMMON_NET_SOCKET_NAME_H_

#include <sys/socket.h>

#include <string>

namespace lockstep {

// "10.0.0.1:4711", "[fe80::1%eth0]:4711"; "?" for what is no address of TCP.
std::string SocketName(const sockaddr_storage& address);

// Of the other end of `socket`; "?" where it is not connected.
std::string PeerOf(int socket);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_SOCKET_NAME_H_
