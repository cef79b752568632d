// One small HTTP/1.1 exchange with a server nearby, as the metadata servers of clouds are: plain, without names to look
// up, with a limit on time and size.
//
// Threading: thread-safe; Exchange blocks, for `limit` at most.
#ifndef LOCKSTEP_WORKER_NOTICE_HTTP_H_
#define LOCKSTEP_WORKER_NOTICE_HTTP_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::worker {

struct HttpEndpoint {
  std::string host;  // an IPv4 or IPv6 address
  int port = 80;
  std::string ToString() const;  // "http://127.0.0.1:8080"
};

// "http://127.0.0.1:8080", "http://169.254.169.254", "http://[fd00:ec2::254]". InvalidArgument for anything else: a
// name would have to be looked up, which may hang.
absl::StatusOr<HttpEndpoint> ParseEndpoint(absl::string_view text);

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query
  std::vector<std::pair<std::string, std::string>> headers;
};

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; of equal ones the last
  std::string body;
};

inline constexpr size_t kMaxHttpReply = 256u << 10;

// The reply in `bytes`, of a stream that has ended or goes on; nullopt: more is needed. DataLoss: it is no HTTP, or it
// ended early.
absl::StatusOr<std::optional<HttpReply>> ParseReply(absl::string_view bytes, bool ended);

// Connects, asks, reads the reply. Any status of the server is a reply. DeadlineExceeded after `limit`; Cancelled as
// soon as `cancel_fd` (-1: none) is readable; Unavailable when nobody listens or the connection breaks; DataLoss as
// ParseReply, and for a reply beyond kMaxHttpReply. Messages name the endpoint.
absl::StatusOr<HttpReply> Exchange(const HttpEndpoint& endpoint, const HttpRequest& request, absl::Duration limit,
                                   int cancel_fd);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_HTTP_H_
