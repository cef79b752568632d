// How one rank of a generation proves to another that it is of the same generation. Every rank makes a secret when a
// generation forms, and gives it, with the address of its listener, to the other members through the chief: over
// connections that are encrypted and authenticated (docs/security.md). The one that connects shows first, in the clear,
// a prelude that only who has the secret can make, and then both agree on keys by TLS 1.3 with a pre-shared key
// (RFC 8446, 4.2.11) that is made from it.
//
// Invariants
//   * Keys are bound to the generation, both ranks, who connects to whom, the number of ranks, and whether what follows
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

// Whether what ranks send one another is encrypted beyond the handshake. Of two ranks that differ, the stricter one is
// followed.
enum class PeerSecurity : char {
  kEncryptedBeyondHost = 'h',  // not where the other end's address is in 127.0.0.0/8
  kEncrypted = 'e',
  kAuthenticated = 'a',  // not
};
// `loopback`: the other end's address is in 127.0.0.0/8.
bool Encrypts(PeerSecurity security, bool loopback);

// What a rank leaves for the others in the rendezvous store: "SECRET h|e|a HOST:PORT".
struct PeerCard {
  std::string secret;  // 64 hexadecimal digits
  PeerSecurity security = PeerSecurity::kEncryptedBeyondHost;
  std::string address;

  std::string Text() const { return secret + ' ' + static_cast<char>(security) + ' ' + address; }
  // InvalidArgument where `text` is none. Messages never hold it.
  static absl::StatusOr<PeerCard> Parse(absl::string_view text);
};

// What is asked of a listener.
enum class PreludeKind : char { kProbe = 'p', kRank = 'r' };
inline constexpr size_t kPreludeBytes = 48;

std::string ProbePrelude();
std::string RankPrelude(absl::string_view secret, const PeerPair& pair);

// What stands in a prelude. Only RankPrelude made with the secret proves anything of it.
struct Prelude {
  PreludeKind kind = PreludeKind::kProbe;
  uint32_t from = 0;
  bool encrypts = true;
};
// None where the bytes are no prelude. REQUIRES: kPreludeBytes bytes.
std::optional<Prelude> ReadPrelude(absl::string_view bytes);

// 32 bytes.
std::string PreSharedKey(absl::string_view secret, const PeerPair& pair);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_SECRET_H_
