// Who may ask a page for what (docs/security.md). A listener that only this machine reaches answers everybody who names
// it by a loopback name: a page of another site, which a name server led here, names another. Any other listener asks
// for a credential, in the header Authorization, or in a link, whose token becomes a cookie.
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
  // OK when `credential` lets its holder read; else the reason, for people.
  using Check = std::function<absl::Status(const std::string& credential)>;

  explicit PageAccess(Check check) : check_(std::move(check)) {}

  // What a caller gets who may not have what it asks for, or whose link is to become a cookie; nullopt: it may.
  std::optional<HttpResponse> Refuse(const HttpRequest& request) const;

 private:
  std::optional<HttpResponse> TakeLink(const HttpRequest& request, const std::string& token) const;

  const Check check_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HTTP_PAGE_ACCESS_H_
