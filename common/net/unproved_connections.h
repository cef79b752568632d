// Limits the connections that were given to gRPC and have not brought a call with a secret yet. Each costs some 80 KiB
// while TLS and HTTP/2 start, and an attacker who recorded a holder's ClientHello can open them.
//
//   1 added ──a call with a secret came──▶ 3 forgotten
//       │ └──closed by either end──▶ 3 forgotten
//       └──room is needed and it is older than 5 s──▶ 2 shut down ──▶ 3 forgotten
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_UNPROVED_CONNECTIONS_H_
#define LOCKSTEP_COMMON_NET_UNPROVED_CONNECTIONS_H_

#include <cstddef>
#include <list>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/storage/descriptor.h"
#include "common/sync/mutex.h"

namespace lockstep {

class UnprovedConnections {
 public:
  explicit UnprovedConnections(size_t most) : most_(most) {}

  // Whether one more connection may be added at `now`, which never goes backwards; shuts down the oldest if that makes
  // room.
  bool MakeRoom(absl::Time now);
  // `connection` is a descriptor of its own (dup) of the one that gRPC has.
  void Add(absl::Time now, Descriptor connection);
  // A call with a secret came from `peer`, as gRPC writes it (ServerContext::peer).
  void Proved(absl::string_view peer);
  size_t size() const;

 private:
  struct Connection {
    Descriptor socket;
    absl::Time since;
    std::string peer;
  };

  const size_t most_;
  mutable Mutex mutex_;
  std::list<Connection> connections_ GUARDED_BY(mutex_);  // the oldest first
  std::map<std::string, std::list<Connection>::iterator> by_peer_ GUARDED_BY(mutex_);
};

// Normalises an address with a port, written as "ipv4:10.0.0.1:5", "ipv6:%5Bfe80::1%25eth0%5D:5", "[::ffff:10.0.0.1]:5"
// or "10.0.0.1:5", to one text without brackets, scheme and zone.
std::string PeerText(absl::string_view peer);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_UNPROVED_CONNECTIONS_H_
