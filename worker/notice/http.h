// A minimal HTTP/1.1 client for nearby servers such as the metadata servers of clouds: without TLS and name resolution,
// with limits on time and size.
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

// Parses "http://127.0.0.1:8080", "http://169.254.169.254" or "http://[fd00:ec2::254]". InvalidArgument for anything
// else: resolving a name might hang.
absl::StatusOr<HttpEndpoint> ParseEndpoint(absl::string_view text);

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query
  std::vector<std::pair<std::string, std::string>> headers;
};

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case; the last of equal names
  std::string body;
};

inline constexpr size_t kMaxHttpReply = 256u << 10;

// Parses a reply from the bytes received so far; `ended`: the connection was closed. nullopt: more bytes are needed.
// DataLoss: not HTTP, or ended early.
absl::StatusOr<std::optional<HttpReply>> ParseReply(absl::string_view bytes, bool ended);

// Connects, sends the request and reads the reply; any HTTP status counts as a reply. DeadlineExceeded after `limit`;
// Cancelled as soon as `cancel_fd` (-1: none) is readable; Unavailable when the connection fails or breaks; DataLoss as
// ParseReply, and for a reply larger than kMaxHttpReply. Messages name the endpoint.
absl::StatusOr<HttpReply> Exchange(const HttpEndpoint& endpoint, const HttpRequest& request, absl::Duration limit,
                                   int cancel_fd);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_NOTICE_HTTP_H_
