#include "common/etcd/etcd_url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<EtcdUrl> ParseEtcdUrl(absl::string_view text) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no place in etcd: ", why,
                                                   "; expected http://HOST:PORT[,HOST:PORT...]/PREFIX or https://..., "
                                                   "as https://etcd.example:2379/lockstep/mnist"));
  };
  EtcdUrl url;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "https://")) {
    url.tls = true;
  } else if (!absl::ConsumePrefix(&rest, "http://")) {
    return bad("it begins with neither http:// nor https://");
  }
  const size_t slash = rest.find('/');
  if (slash == absl::string_view::npos) return bad("it has no prefix, which tells this job from others");
  absl::string_view prefix = rest.substr(slash + 1);
  absl::ConsumeSuffix(&prefix, "/");
  if (prefix.empty()) return bad("it has no prefix, which tells this job from others");
  for (const char c : prefix) {
    if (!absl::ascii_isprint(c) || c == ' ' || c == '?' || c == '#')
      return bad("its prefix has a character that is not allowed");
  }
  if (prefix.front() == '/' || absl::StrContains(prefix, "//")) return bad("its prefix has an empty part");
  url.prefix = std::string(prefix);
  for (const absl::string_view endpoint : absl::StrSplit(rest.substr(0, slash), ',')) {
    const absl::StatusOr<HostPort> place = ParseHostPort(endpoint);
    if (!place.ok()) return bad(place.status().message());
    if (place->port == 0) return bad("port 0 is none");
    url.endpoints.push_back(place->ToString());
  }
  return url;
}

}  // namespace lockstep
