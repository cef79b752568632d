// How ranks of a generation authenticate each other. When a generation forms, every rank makes a secret and gives it,
// with the address of its listener, to the other members through the chief, over encrypted and authenticated
// connections (docs/security.md). A rank that connects first sends, in the clear, a prelude that only an owner of the
// secret can make. Then both ends run TLS 1.3 with a pre-shared key (RFC 8446, 4.2.11) derived from the secret.
//
// Invariants
//   * A key is bound to the generation, both ranks and their direction, the number of ranks, and whether the data after
//     the handshake is encrypted.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_SECRET_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_SECRET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/protocol/ids.h"

namespace lockstep::worker {

// One connection of a generation: rank `from` connects to rank `to`.
struct PeerPair {
  Generation generation;
  int from = 0;
  int to = 0;
  int size = 0;
  bool encrypts = true;  // after the handshake
};

// Whether the data between ranks is encrypted after the handshake. If two ranks differ, the stricter setting holds.
enum class PeerSecurity : char {
  kEncryptedBeyondHost = 'h',  // encrypted unless the other end's address is in 127.0.0.0/8
  kEncrypted = 'e',
  kAuthenticated = 'a',  // only the handshake is protected
};
// `loopback`: the other end's address is in 127.0.0.0/8.
bool Encrypts(PeerSecurity security, bool loopback);

// A rank's entry in the rendezvous store: "SECRET h|e|a HOST:PORT".
struct PeerCard {
  std::string secret;  // 64 hexadecimal digits
  PeerSecurity security = PeerSecurity::kEncryptedBeyondHost;
  std::string address;

  std::string Text() const { return secret + ' ' + static_cast<char>(security) + ' ' + address; }
  // InvalidArgument when `text` is malformed. The message never contains it.
  static absl::StatusOr<PeerCard> Parse(absl::string_view text);
};

// The purpose of a connection to a listener.
enum class PreludeKind : char { kProbe = 'p', kRank = 'r' };
inline constexpr size_t kPreludeBytes = 48;

std::string ProbePrelude();
std::string RankPrelude(absl::string_view secret, const PeerPair& pair);

// The contents of a prelude. They are unproven until the bytes equal a RankPrelude made with the secret.
struct Prelude {
  PreludeKind kind = PreludeKind::kProbe;
  uint32_t from = 0;
  bool encrypts = true;
};
// None when the bytes are no prelude. REQUIRES: bytes.size() == kPreludeBytes.
std::optional<Prelude> ReadPrelude(absl::string_view bytes);

// The TLS key, 32 bytes.
std::string PreSharedKey(absl::string_view secret, const PeerPair& pair);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_SECRET_H_
