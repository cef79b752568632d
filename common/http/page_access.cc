#include "common/http/page_access.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

// "localhost:29401" names this machine, whatever a name server says.
bool NamesLoopback(absl::string_view host) {
  const size_t colon = host.rfind(':');
  const bool has_port = colon != absl::string_view::npos && !absl::EndsWith(host, "]");
  const std::string name = absl::AsciiStrToLower(has_port ? host.substr(0, colon) : host);
  return name == "localhost" || name == "[::1]" || absl::EndsWith(name, ".localhost") ||
         (absl::StartsWith(name, "127.") && name.find_first_not_of("0123456789.") == std::string::npos);
}

HttpResponse PageRefusal(unsigned status, const std::string& why) {
  HttpResponse response;
  response.status = status;
  response.body = why + "\n";
  response.headers.emplace_back("Cache-Control", "no-store");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

// Browsers send a cookie to all ports of a host.
std::string CookieName(const HttpRequest& request) { return absl::StrCat("lockstep_", request.port); }

constexpr char kHowToAsk[] =
    "this page needs a credential. Make one on the chief's machine, `lockstep token --dir DIR --role read`, and open "
    "this address with ?token=CREDENTIAL behind it; programs send it as `Authorization: Bearer CREDENTIAL`";

}  // namespace

std::optional<HttpResponse> PageAccess::Refuse(const HttpRequest& request) const {
  const auto token = request.query.find("token");
  if (request.on_loopback) {
    if (!NamesLoopback(request.host)) {
      return PageRefusal(403, "this page is for this machine alone: ask for it as localhost or 127.0.0.1");
    }
    return std::nullopt;
  }
  if (token != request.query.end()) return TakeLink(request, token->second);
  absl::string_view bearer = request.authorization;
  std::string credential = CookieIn(request.cookie, CookieName(request));
  if (absl::ConsumePrefix(&bearer, "Bearer ")) credential = std::string(absl::StripAsciiWhitespace(bearer));
  if (credential.empty()) return PageRefusal(401, kHowToAsk);
  const absl::Status allowed = check_(credential);
  if (!allowed.ok()) return PageRefusal(401, absl::StrCat(allowed.message()));
  return std::nullopt;
}

std::optional<HttpResponse> PageAccess::TakeLink(const HttpRequest& request, const std::string& token) const {
  const absl::Status allowed = check_(token);
  if (!allowed.ok()) return PageRefusal(401, absl::StrCat(allowed.message()));
  HttpResponse response;
  response.status = 303;
  // Relative, for proxies that serve the page below a prefix. The last part of the path is all that is needed.
  std::string last = request.path.substr(request.path.rfind('/') + 1);
  const bool plain = std::all_of(last.begin(), last.end(), [](char c) { return absl::ascii_isalnum(c) || c == '.'; });
  response.headers.emplace_back("Location", absl::StrCat("./", plain ? last : ""));
  response.headers.emplace_back("Set-Cookie",
                                absl::StrCat(CookieName(request), "=", token, "; HttpOnly; SameSite=Lax; Path=/"));
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace lockstep
