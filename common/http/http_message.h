// An HTTP request as a handler sees it, and the response.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_HTTP_HTTP_MESSAGE_H_
#define LOCKSTEP_COMMON_HTTP_HTTP_MESSAGE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

struct HttpRequest {
  std::string path;                          // decoded, begins with '/'
  std::map<std::string, std::string> query;  // decoded; the last value of a repeated name
  std::string host;                          // the header Host
  std::string authorization;                 // the header Authorization
  std::string cookie;                        // the header Cookie
  std::string if_none_match;                 // the header If-None-Match
  bool on_loopback = false;                  // the listener is reachable from this machine only
  int port = 0;                              // of that listener
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  // besides those that the server adds
};

// Parses path and query of a request's target; the headers stay empty. nullopt when it is malformed.
std::optional<HttpRequest> ParseTarget(absl::string_view target);

// The value of the cookie `name` in the Cookie header `header`; "" when it is missing.
std::string CookieIn(absl::string_view header, absl::string_view name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HTTP_HTTP_MESSAGE_H_
