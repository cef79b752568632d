#include "common/object_store/s3_url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/object_store/object_key.h"

namespace lockstep {
namespace {

constexpr absl::string_view kScheme = "s3://";

// The rules of S3 for new buckets, without those on reserved names.
bool IsBucket(absl::string_view name) {
  const auto is_end = [](char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  return name.size() >= 3 && name.size() <= 63 && is_end(name.front()) && is_end(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_end(c) || c == '-' || c == '.'; }) &&
         !absl::StrContains(name, "..");
}

}  // namespace

bool IsS3Url(absl::string_view text) { return absl::StartsWithIgnoreCase(text, "s3:"); }

bool IsUrl(absl::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme == absl::string_view::npos || scheme == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(scheme),
                     [](char c) { return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.'; });
}

absl::StatusOr<S3Url> ParseS3Url(absl::string_view text) {
  const auto bad = [text](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("'", absl::CHexEscape(text.substr(0, 200)), "' ", why,
                                                   ". Write s3://bucket/prefix, for example s3://models/runs/7"));
  };
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, kScheme)) return bad("does not begin with s3://");
  const size_t slash = rest.find('/');
  const absl::string_view bucket = rest.substr(0, slash);
  if (bucket.empty()) return bad("names no bucket");
  if (!IsBucket(bucket)) {
    return bad(
        "does not name a bucket: that is 3 to 63 lower-case letters, digits, '-' and '.', with a letter or digit at "
        "both ends");
  }
  absl::string_view prefix = slash == absl::string_view::npos ? "" : rest.substr(slash + 1);
  absl::ConsumeSuffix(&prefix, "/");
  if (!prefix.empty()) {
    if (const absl::Status checked = CheckObjectKey(prefix); !checked.ok()) {
      return bad(absl::StrCat("has a bad prefix: ", checked.message()));
    }
    if (prefix.size() > kMaxPrefixBytes)
      return bad(absl::StrCat("has a prefix of more than ", kMaxPrefixBytes, " bytes"));
  }
  return S3Url{std::string(bucket), std::string(prefix)};
}

absl::Status CheckPlace(absl::string_view place) {
  if (IsS3Url(place)) return ParseS3Url(place).status();
  if (!IsUrl(place)) return absl::OkStatus();
  const std::string shown = absl::CHexEscape(place.substr(0, 200));
  return absl::InvalidArgumentError(absl::StrCat(
      "'", shown,
      "' is a URL of a kind that holds no jobs: their place is a directory or s3://BUCKET/PREFIX. "
      "A store that speaks S3 is reached by the latter with AWS_ENDPOINT_URL; a directory of this name is ./",
      shown));
}

std::string ToString(const S3Url& url) {
  return absl::StrCat(kScheme, url.bucket, url.prefix.empty() ? "" : "/", url.prefix);
}

}  // namespace lockstep
