// What follows from a job's token. The token itself never crosses a connection: a caller shows a secret made from it,
// of the role that the call needs, and the chief proves by TLS that it has the private key made from it
// (docs/design/0021-chief-on-the-wire.md).
//
//   token ─┬─ HMAC "lockstep admin", "… join", "… read" ──▶ the secrets of the roles ── HMAC ──▶ their server names
//          └─ HMAC "lockstep chief key" ──▶ P-256 private key ──▶ certificate, and its pin: SHA-256 of the public key
//
// A role credential has a role's secret and the pin, and not the token: who has one can neither take another role nor
// stand in for the chief.
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

// Each may do all that those before it may.
enum class Role {
  kRead,   // status
  kJoin,   // train: sessions, heartbeats, shares
  kAdmin,  // stop, drain, change checkpoints, report how processes ended
};
absl::string_view NameOf(Role role);  // "read", "join", "admin"
std::optional<Role> RoleNamed(absl::string_view name);

// What a caller shows and expects.
struct CallerKey {
  Role role = Role::kRead;
  std::string secret;  // 64 hexadecimal digits
  std::string pin;     // of the chief, 64 hexadecimal digits
  std::string socket;  // of the chief, where its address file is at hand (chief_channel.h)
};

// The key of `role` by a token, or the one that a role credential is, whatever its role. InvalidArgument: a damaged
// role credential, or an empty token.
absl::StatusOr<CallerKey> CallerKeyOf(absl::string_view token, Role role);

// The server name that the holder of a role's secret asks for in its ClientHello, by which a chief tells holders from
// strangers before it answers (guarded_listener.h). It tells nothing of the secret.
std::string ServerNameOf(absl::string_view secret);

// Those of all roles.
std::vector<std::string> ServerNames(absl::string_view token);

// "lockstep-ROLE-SECRET-PIN-CHECK"; the last word shows damage before a chief is asked. InvalidArgument: `token` is a
// role credential itself, or empty.
absl::StatusOr<std::string> RoleCredential(absl::string_view token, Role role);

// The role whose secret this is, by `token`. Takes as long for every secret of a length.
std::optional<Role> RoleOfSecret(absl::string_view token, absl::string_view secret);

// What the chief proves itself by: PEM.
struct ChiefIdentity {
  std::string private_key;
  std::string certificate;  // signed by itself
};
absl::StatusOr<ChiefIdentity> ChiefIdentityOf(absl::string_view token);

// The pin of a certificate in PEM; "" for what is none.
std::string PinOf(absl::string_view certificate);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CHIEF_KEY_H_
