#include "common/object_store/s3_signature.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/digest/hmac.h"
#include "common/digest/sha256.h"

namespace lockstep {
namespace {

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";

std::string Hmac(absl::string_view key, absl::string_view text) {
  const Sha256Digest digest = HmacSha256(key, text);
  return std::string(reinterpret_cast<const char*>(digest.data()), digest.size());
}

}  // namespace

std::string S3Encode(absl::string_view text, bool keep_slash) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
    if (plain || (c == '/' && keep_slash)) {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string S3Query(const std::map<std::string, std::string>& query) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(S3Encode(name, false), S3Encode(value, false));
  std::sort(encoded.begin(), encoded.end());
  return absl::StrJoin(encoded, "&", absl::PairFormatter("="));
}

std::map<std::string, std::string> SignS3Request(const S3Request& request, const S3Credentials& credentials,
                                                 absl::string_view region, absl::Time now) {
  const std::string instant = absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  const std::string day = instant.substr(0, 8);
  std::map<std::string, std::string> headers = request.headers;
  const std::string payload = Sha256Hex(request.body);
  headers["x-amz-content-sha256"] = payload;
  headers["x-amz-date"] = instant;
  if (!credentials.session_token.empty()) headers["x-amz-security-token"] = credentials.session_token;

  std::map<std::string, std::string> to_sign = headers;
  to_sign["host"] = request.host;
  std::vector<std::string> names;
  std::string lines;
  for (const auto& [name, value] : to_sign) {
    std::string clean = value;
    absl::RemoveExtraAsciiWhitespace(&clean);
    absl::StrAppend(&lines, name, ":", clean, "\n");
    names.push_back(name);
  }
  const std::string signed_names = absl::StrJoin(names, ";");
  const std::string canonical = absl::StrCat(request.method, "\n", S3Encode(request.path, /*keep_slash=*/true), "\n",
                                             S3Query(request.query), "\n", lines, "\n", signed_names, "\n", payload);

  const std::string scope = absl::StrCat(day, "/", region, "/s3/aws4_request");
  const std::string text = absl::StrCat(kAlgorithm, "\n", instant, "\n", scope, "\n", Sha256Hex(canonical));
  std::string key = absl::StrCat("AWS4", credentials.secret_key);
  for (const absl::string_view part :
       {absl::string_view(day), region, absl::string_view("s3"), absl::string_view("aws4_request")}) {
    key = Hmac(key, part);
  }
  headers["authorization"] = absl::StrCat(kAlgorithm, " Credential=", credentials.access_key, "/", scope,
                                          ",SignedHeaders=", signed_names, ",Signature=", ToHex(HmacSha256(key, text)));
  return headers;
}

}  // namespace lockstep
