#include "common/object_store/s3_endpoint.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep {

absl::StatusOr<S3Endpoint> MakeS3Endpoint(const S3Settings& settings, absl::string_view bucket) {
  S3Endpoint endpoint;
  endpoint.region = settings.region.empty() ? "us-east-1" : settings.region;
  std::string address = settings.endpoint;
  if (address.empty()) {
    address = absl::StrCat("https://s3.", endpoint.region, ".amazonaws.com",
                           absl::StartsWith(endpoint.region, "cn-") ? ".cn" : "");
  }
  const size_t scheme_end = address.find("://");
  endpoint.scheme = address.substr(0, scheme_end);
  absl::string_view rest = absl::string_view(address).substr(scheme_end == std::string::npos ? 0 : scheme_end + 3);
  const size_t slash = std::min(rest.find('/'), rest.size());
  absl::string_view host = rest.substr(0, slash);
  if ((endpoint.scheme != "http" && endpoint.scheme != "https") || host.empty() ||
      rest.find_first_of("@?# ") != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("the endpoint of S3 is '", address, "'; write AWS_ENDPOINT_URL as https://host[:port]"));
  }
  absl::ConsumeSuffix(&host, endpoint.scheme == "https" ? ":443" : ":80");
  endpoint.host = absl::AsciiStrToLower(host);
  endpoint.base = std::string(absl::StripSuffix(rest.substr(slash), "/"));
  if (settings.path_style.value_or(!settings.endpoint.empty() || absl::StrContains(bucket, '.'))) {
    absl::StrAppend(&endpoint.base, "/", bucket);
  } else {
    endpoint.host = absl::StrCat(bucket, ".", endpoint.host);
  }
  return endpoint;
}

}  // namespace lockstep
