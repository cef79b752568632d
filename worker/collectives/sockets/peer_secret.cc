#include "worker/collectives/sockets/peer_secret.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/digest/hmac.h"

namespace lockstep::worker {
namespace {

constexpr char kMagic[] = "LSpeer01";
constexpr size_t kMagicBytes = 8;
constexpr size_t kHeadBytes = 16;  // magic, kind, whether encrypted, two zeros, the rank in four bytes
constexpr size_t kSecretDigits = 64;

std::string Bytes(const Sha256Digest& digest) { return {digest.begin(), digest.end()}; }

// Differs for any two purposes and pairs.
std::string Context(absl::string_view purpose, const PeerPair& pair) {
  return absl::StrCat("lockstep ", purpose, " ", pair.generation.ToString(), " ", pair.from, ">", pair.to, "/",
                      pair.size, pair.encrypts ? " encrypted" : " authenticated");
}

std::string Head(PreludeKind kind, uint32_t from, bool encrypts) {
  std::string head(kMagic, kMagicBytes);
  head += {static_cast<char>(kind), encrypts ? '\1' : '\0', '\0', '\0'};
  for (int shift = 24; shift >= 0; shift -= 8) head.push_back(static_cast<char>(from >> shift & 0xff));
  return head;
}

}  // namespace

bool Encrypts(PeerSecurity security, bool loopback) {
  return security == PeerSecurity::kEncrypted || (security == PeerSecurity::kEncryptedBeyondHost && !loopback);
}

absl::StatusOr<PeerCard> PeerCard::Parse(absl::string_view text) {
  constexpr size_t kHead = kSecretDigits + 3;
  const bool whole = text.size() > kHead && text[kSecretDigits] == ' ' && text[kHead - 1] == ' ';
  const auto security = static_cast<PeerSecurity>(whole ? text[kSecretDigits + 1] : '?');
  if (security != PeerSecurity::kEncryptedBeyondHost && security != PeerSecurity::kEncrypted &&
      security != PeerSecurity::kAuthenticated) {
    return absl::InvalidArgumentError("what a rank left for the others is no secret and address");
  }
  return PeerCard{std::string(text.substr(0, kSecretDigits)), security, std::string(text.substr(kHead))};
}

std::string ProbePrelude() {
  std::string bytes = Head(PreludeKind::kProbe, 0, false);
  bytes.resize(kPreludeBytes);
  return bytes;
}

std::string RankPrelude(absl::string_view secret, const PeerPair& pair) {
  return Head(PreludeKind::kRank, static_cast<uint32_t>(pair.from), pair.encrypts) +
         Bytes(HmacSha256(secret, Context("prelude", pair)));
}

std::optional<Prelude> ReadPrelude(absl::string_view bytes) {
  if (bytes.substr(0, kMagicBytes) != absl::string_view(kMagic, kMagicBytes)) return std::nullopt;
  Prelude prelude;
  prelude.kind = static_cast<PreludeKind>(bytes[kMagicBytes]);
  if (prelude.kind != PreludeKind::kProbe && prelude.kind != PreludeKind::kRank) return std::nullopt;
  prelude.encrypts = bytes[kMagicBytes + 1] != '\0';
  for (size_t i = kHeadBytes - 4; i < kHeadBytes; ++i) {
    prelude.from = prelude.from << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return prelude;
}

std::string PreSharedKey(absl::string_view secret, const PeerPair& pair) {
  return Bytes(HmacSha256(secret, Context("pre-shared key", pair)));
}

}  // namespace lockstep::worker
