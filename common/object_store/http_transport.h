// The interface that sends one HTTP request and returns the answer. Implemented by libcurl (http_client.h), and by a
// server in memory for tests.
//
// Threading: thread-safe; Send blocks.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_HTTP_TRANSPORT_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_HTTP_TRANSPORT_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

struct HttpClientRequest {
  std::string method;  // GET, HEAD, PUT, POST or DELETE
  std::string url;     // http or https, encoded
  std::map<std::string, std::string> headers;
  absl::string_view body;  // not owned; PUT and POST always have one, perhaps of no bytes
  absl::Duration timeout = absl::Seconds(30);
  size_t max_answer = size_t{16} << 20;  // bytes of its body
};

struct HttpAnswer {
  int code = 0;
  std::map<std::string, std::string> headers;  // lower-case names
  std::string body;
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // Returns an answer of any HTTP code. Does not follow redirections. Unavailable: no complete answer came in time, and
  // the request may have taken effect, or may still do so; ResourceExhausted: the answer is longer than `max_answer`;
  // FailedPrecondition: the server's certificate is not trusted, or this machine lacks what the request needs. Messages
  // do not repeat the request.
  virtual absl::StatusOr<HttpAnswer> Send(const HttpClientRequest& request) = 0;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_HTTP_TRANSPORT_H_
