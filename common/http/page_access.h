// Access control of the pages (docs/security.md). A listener that is reachable from this machine only answers every
// request whose Host is a loopback name; another name may be that of a foreign site whose DNS points here (DNS
// rebinding). Any other listener demands a credential: in the header Authorization, or as a token in a link, which
// becomes a cookie.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_HTTP_PAGE_ACCESS_H_
#define LOCKSTEP_COMMON_HTTP_PAGE_ACCESS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/http/http_message.h"

namespace lockstep {

class PageAccess {
 public:
  // OK when the holder of `credential` may read; else the reason, for people.
  using Check = std::function<absl::Status(const std::string& credential)>;

  explicit PageAccess(Check check) : check_(std::move(check)) {}

  // The response to a request that is not allowed, or whose link is to become a cookie; nullopt when the request is
  // allowed.
  std::optional<HttpResponse> Refuse(const HttpRequest& request) const;

 private:
  std::optional<HttpResponse> TakeLink(const HttpRequest& request, const std::string& token) const;

  const Check check_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HTTP_PAGE_ACCESS_H_
