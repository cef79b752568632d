// The keys that are derived from a job's token. The token itself is never sent: a caller shows a secret derived from it
// for the role that the call needs, and the chief proves by TLS that it has the private key derived from it
// (docs/design/0021-chief-on-the-wire.md).
//
//   token ─┬─ HMAC "lockstep admin", "… join", "… read" ──▶ the secrets of the roles ── HMAC ──▶ their server names
//          └─ HMAC "lockstep chief key" ──▶ P-256 private key ──▶ certificate, and its pin: SHA-256 of the public key
//
// A role credential holds a role's secret and the pin, but not the token: its holder can neither take another role nor
// impersonate the chief.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_NET_CHIEF_KEY_H_
#define LOCKSTEP_COMMON_NET_CHIEF_KEY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Each role includes the rights of those before it.
enum class Role {
  kRead,   // status
  kJoin,   // train: sessions, heartbeats, shares
  kAdmin,  // stop, drain, change checkpoints, report how processes ended
};
absl::string_view NameOf(Role role);  // "read", "join", "admin"
std::optional<Role> RoleNamed(absl::string_view name);

// What a caller shows to a chief, and expects of it.
struct CallerKey {
  Role role = Role::kRead;
  std::string secret;  // 64 hexadecimal digits
  std::string pin;     // of the chief, 64 hexadecimal digits
  std::string socket;  // of the chief, when its address file is at hand (chief_channel.h)
};

// The key for `role` derived from a token; or, if `token` is a role credential, the key in it, whatever its role.
// InvalidArgument: a damaged role credential, or an empty token.
absl::StatusOr<CallerKey> CallerKeyOf(absl::string_view token, Role role);

// The server name that the holder of a role's secret asks for in its ClientHello, by which a chief distinguishes
// holders from strangers before it answers (guarded_listener.h). It reveals nothing about the secret.
std::string ServerNameOf(absl::string_view secret);

// The server names of all roles.
std::vector<std::string> ServerNames(absl::string_view token);

// "lockstep-ROLE-SECRET-PIN-CHECK"; the last word is a checksum, which reveals damage before a chief is contacted.
// InvalidArgument: `token` is a role credential itself, or empty.
absl::StatusOr<std::string> RoleCredential(absl::string_view token, Role role);

// The role whose secret this is, by `token`; nullopt for none. Takes the same time for all secrets of one length.
std::optional<Role> RoleOfSecret(absl::string_view token, absl::string_view secret);

// The chief's key and certificate, as PEM.
struct ChiefIdentity {
  std::string private_key;
  std::string certificate;  // self-signed
};
absl::StatusOr<ChiefIdentity> ChiefIdentityOf(absl::string_view token);

// The pin of a PEM certificate; "" when it is malformed.
std::string PinOf(absl::string_view certificate);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CHIEF_KEY_H_
