// Both ends of a connection to a chief: TLS 1.2 or newer, over which the chief proves its key and every call proves its
// role before any of its message is read (chief_key.h). Processes of one user on one machine that share a folder can
// also use a Unix domain socket: the kernel tells which user listens there, and nothing has to be encrypted.
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
  // Whether the peer that answered last has another key than the job's chief. No call reaches such a peer.
  std::shared_ptr<const std::atomic<bool>> stranger;
};

// The path of the Unix domain socket of the chief whose address is in the file `address_file`; "" when no socket can
// have that path.
std::string SocketBeside(const std::string& address_file);

// A channel with a connection of its own (equal arguments would share one), without gRPC's growing back-off: callers
// retry at their own pace. Keep-alive detects a peer that vanished without a reset. Every call on it carries the key's
// secret. Uses `key.socket` when a process of this user or of root listens there at the time of the call.
ChiefChannel MakeChiefChannel(const std::string& address, absl::string_view purpose, const CallerKey& key);

// The error for a peer at `address` that is not the job's chief. Unavailable when the token is known to be right, since
// another program must have taken the chief's port; else Unauthenticated, since the token may be that of another job.
absl::Status NotTheChief(absl::string_view address, bool token_is_right);

// The server credentials of a chief with this token, for its address and for its socket. A call without a secret of the
// token ends with Unauthenticated, and `refused` is called.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeChiefCredentials(const std::string& token,
                                                                              std::function<void()> refused);
std::shared_ptr<grpc::ServerCredentials> MakeSocketCredentials(const std::string& token, std::function<void()> refused);

// OK when the call's role has at least the rights of `least`; else PermissionDenied. REQUIRES: the server listens with
// MakeChiefCredentials alone.
grpc::Status CheckRole(const grpc::ServerContextBase& call, Role least);

// The caller, for people: "admin at ipv4:10.0.0.2:4711". REQUIRES: CheckRole found a role.
std::string CallerOf(const grpc::ServerContextBase& call);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_CHIEF_CHANNEL_H_
