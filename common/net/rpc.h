// Shared by all gRPC clients and servers of the project: limits, addresses and status conversion.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_RPC_H_
#define LOCKSTEP_COMMON_NET_RPC_H_

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// Largest message of the protocol: a kernel plan with its envelope.
inline constexpr int kMaxMessageBytes = 32 << 20;
// How long an attempt to connect may take: several round trips to the farthest peer.
inline constexpr int kConnectLimitMs = 10000;
// Payload of one chunk of a share or a file.
inline constexpr size_t kChunkBytes = size_t{1} << 20;

struct HostPort {
  std::string host;
  int port = 0;

  std::string ToString() const;
};

// "host:port" or "[v6]:port"; port 0 to 65535. InvalidArgument says what is wrong.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

// Attaches a description, for people, of what the caller has been doing for a while to a call. Long ones are cut.
void SetDoing(grpc::ClientContext& context, absl::string_view doing);
// The description attached to a call; "" when there is none.
std::string DoingOf(const grpc::ServerContextBase& context);

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_RPC_H_
