// Both ends of a connection to a chief: TLS 1.2 or newer, on which the chief proves its key and every call its role
// before a byte of its message is read (chief_key.h). Between processes of one user on one machine that share a folder
// there is a socket of the file system too: the kernel says who listens there, and nothing has to be encrypted.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_CHIEF_CHANNEL_H_
#define LOCKSTEP_COMMON_NET_CHIEF_CHANNEL_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/net/chief_key.h"

namespace lockstep {

struct ChiefChannel {
  std::shared_ptr<grpc::Channel> channel;
  // Whether the last who answered has another key than the job's chief. No call reaches such a one.
  std::shared_ptr<const std::atomic<bool>> stranger;
};

// Where a chief whose address stands in the file `address_file` listens for its own machine; "" where no socket can
// have that name.
std::string SocketBeside(const std::string& address_file);

// A channel with a connection of its own (equal arguments would share one), without gRPC's growing back-off: callers
// retry at their own pace. Keep-alive finds a peer that vanished without a reset. Every call on it carries the key's
// secret. Goes by `key.socket` where a process of this user, or root's, listens there now.
ChiefChannel MakeChiefChannel(const std::string& address, absl::string_view purpose, const CallerKey& key);

// What is said of a stranger at `address`. Unavailable where the token is known to be right: somebody has taken the
// chief's port. Else Unauthenticated: the token may be of another job.
absl::Status NotTheChief(absl::string_view address, bool token_is_right);

// What a chief with this token listens with, at an address and at its socket. `refused` hears of every call that
// carries no secret of the token's; such a call ends with Unauthenticated.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeChiefCredentials(const std::string& token,
                                                                              std::function<void()> refused);
std::shared_ptr<grpc::ServerCredentials> MakeSocketCredentials(const std::string& token, std::function<void()> refused);

// OK when the call's role may do what `least` may; else PermissionDenied. REQUIRES: the server listens with
// MakeChiefCredentials alone.
grpc::Status CheckRole(const grpc::ServerContextBase& call, Role least);

// Who calls, for people: "admin at ipv4:10.0.0.2:4711". REQUIRES: CheckRole found a role.
std::string CallerOf(const grpc::ServerContextBase& call);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CHIEF_CHANNEL_H_
