// The addresses of sockets as text for people.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_SOCKET_NAME_H_
#define LOCKSTEP_COMMON_NET_SOCKET_NAME_H_

#include <sys/socket.h>

#include <string>

namespace lockstep {

// "10.0.0.1:4711", "[fe80::1%eth0]:4711"; "?" for an address that is not of IPv4 or IPv6.
std::string SocketName(const sockaddr_storage& address);

// The address of the peer of `socket`; "?" when it is not connected.
std::string PeerOf(int socket);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_SOCKET_NAME_H_
