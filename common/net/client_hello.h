// The first message of a TLS connection, read before anything answers it (RFC 8446, 4.1.2; the server name: RFC 6066,
// 3).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_NET_CLIENT_HELLO_H_
#define LOCKSTEP_COMMON_NET_CLIENT_HELLO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// A longer ClientHello is none for us: those of gRPC have some 300 bytes, with a key of the post-quantum kind 1,600.
constexpr size_t kMostHelloBytes = 4096;

struct ClientHello {
  enum class State {
    kPartial,  // a ClientHello may begin so; more bytes decide
    kNone,     // something else, or damaged
    kWhole,
  };
  State state = State::kNone;
  std::string server_name;  // as it stands there; empty: none is asked for
};

// What `bytes`, the first that a connection brought, are. A ClientHello in more than one record is kNone.
ClientHello ReadClientHello(absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CLIENT_HELLO_H_
