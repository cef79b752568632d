// Parses the first message of a TLS connection before anything answers it (RFC 8446, 4.1.2; the server name: RFC 6066,
// 3).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_NET_CLIENT_HELLO_H_
#define LOCKSTEP_COMMON_NET_CLIENT_HELLO_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// A longer ClientHello is refused: those of gRPC have some 300 bytes, or 1,600 with a post-quantum key share.
constexpr size_t kMostHelloBytes = 4096;

struct ClientHello {
  enum class State {
    kPartial,  // a valid beginning; more bytes are needed
    kNone,     // something else, or damaged
    kWhole,
  };
  State state = State::kNone;
  std::string server_name;  // as sent; empty: no server name was sent
};

// Classifies the first bytes of a connection. A ClientHello in more than one record is kNone.
ClientHello ReadClientHello(absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CLIENT_HELLO_H_
