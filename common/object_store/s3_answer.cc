#include "common/object_store/s3_answer.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/object_store/s3_xml.h"

namespace lockstep {
namespace {

using absl::StatusCode;

struct Rule {
  const char* error;  // S3's code
  StatusCode code;
  const char* remedy;
  bool again = false;
};

// What S3's own codes say more exactly than the HTTP code.
constexpr std::array<Rule, 24> kRules = {{
    {"NoSuchKey", StatusCode::kNotFound, ""},
    {"NoSuchUpload", StatusCode::kNotFound, ""},
    {"NoSuchBucket", StatusCode::kFailedPrecondition, "Create the bucket, or correct the URL"},
    {"PreconditionFailed", StatusCode::kAlreadyExists, ""},
    {"NotImplemented", StatusCode::kFailedPrecondition, "The server does not have this operation; use another one"},
    {"InvalidRange", StatusCode::kDataLoss, "The object is shorter than it should be"},
    {"EntityTooSmall", StatusCode::kInvalidArgument, "Every part but the last needs 5 MiB"},
    {"InvalidPart", StatusCode::kInvalidArgument, "Send the part again"},
    {"InvalidPartOrder", StatusCode::kInvalidArgument, "Name the parts in order"},
    {"EntityTooLarge", StatusCode::kInvalidArgument, "Send the object in parts"},
    {"BadDigest", StatusCode::kDataLoss, "The bytes changed on their way; check this machine's memory and network",
     true},
    {"XAmzContentSHA256Mismatch", StatusCode::kDataLoss,
     "The bytes changed on their way; check this machine's memory and network", true},
    {"RequestTimeTooSkewed", StatusCode::kFailedPrecondition, "Set this machine's clock (NTP)"},
    {"SignatureDoesNotMatch", StatusCode::kPermissionDenied, "Check AWS_SECRET_ACCESS_KEY"},
    {"InvalidAccessKeyId", StatusCode::kPermissionDenied, "Check AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL"},
    {"AccessDenied", StatusCode::kPermissionDenied,
     "Allow these keys s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListBucket here"},
    {"ExpiredToken", StatusCode::kPermissionDenied, "The session of these keys is over; fetch others"},
    {"InvalidToken", StatusCode::kPermissionDenied, "Check AWS_SESSION_TOKEN"},
    {"TokenRefreshRequired", StatusCode::kPermissionDenied, "The session of these keys is over; fetch others"},
    {"QuotaExceeded", StatusCode::kResourceExhausted, "Free space, or raise the quota"},
    {"AuthorizationHeaderMalformed", StatusCode::kFailedPrecondition, "Set AWS_REGION to the bucket's region"},
    {"PermanentRedirect", StatusCode::kFailedPrecondition, "Set AWS_REGION to the bucket's region"},
    {"RequestTimeout", StatusCode::kUnavailable, "", true},
    {"InternalError", StatusCode::kUnavailable, "", true},
}};

Rule RuleOf(int code) {
  if (code == 404) return {"", StatusCode::kNotFound, ""};
  if (code == 412) return {"", StatusCode::kAlreadyExists, ""};
  if (code == 401 || code == 403) return {"", StatusCode::kPermissionDenied, "Check the keys and their rights"};
  if (code == 416) return {"", StatusCode::kDataLoss, "The object is shorter than it should be"};
  if (code == 501) return {"", StatusCode::kFailedPrecondition, "The server does not have this operation"};
  if (code == 507) return {"", StatusCode::kResourceExhausted, "Free space, or raise the quota"};
  if (code >= 300 && code < 400) {
    return {"", StatusCode::kFailedPrecondition, "Set AWS_REGION or AWS_ENDPOINT_URL to where the bucket is"};
  }
  if (code < 300) return {"", StatusCode::kUnavailable, "", true};  // an error where none was foreseen
  if (code == 408 || code == 409 || code == 425 || code == 429 || code >= 500) {
    return {"", StatusCode::kUnavailable, "", true};
  }
  return {"", StatusCode::kFailedPrecondition, "Does AWS_ENDPOINT_URL name an S3 server?"};
}

}  // namespace

S3Verdict JudgeS3Answer(const HttpAnswer& answer, bool conditional, absl::string_view place) {
  const S3Error error = ParseS3Error(answer.body).value_or(S3Error());
  Rule rule = RuleOf(answer.code);
  // 5xx, 409 and 429 are for another attempt whatever the body says, but for what never changes.
  const bool fixed = !rule.again || answer.code < 300 || error.code == "NotImplemented";
  const auto found =
      std::find_if(kRules.begin(), kRules.end(), [&](const Rule& known) { return known.error == error.code; });
  if (found != kRules.end() && fixed) rule = *found;
  std::string remedy = rule.remedy;
  if (conditional && (answer.code == 501 || error.code == "NotImplemented")) {
    remedy =
        "The server does not take `If-None-Match: *` on PUT, on which the safety of a job rests. Use one that does "
        "(AWS "
        "S3, Ceph, MinIO), or a file system";
  }
  std::string region = error.region;
  if (const auto header = answer.headers.find("x-amz-bucket-region"); header != answer.headers.end()) {
    if (region.empty()) region = header->second;
  }
  if (!region.empty() && rule.code == StatusCode::kFailedPrecondition) {
    remedy = absl::StrCat("The bucket is in region '", region, "': set AWS_REGION to it");
  }
  std::string message = absl::StrCat(place, " answers ", answer.code);
  if (!error.code.empty()) absl::StrAppend(&message, " ", absl::CHexEscape(error.code));
  if (!error.message.empty()) absl::StrAppend(&message, " (", absl::CHexEscape(error.message.substr(0, 300)), ")");
  if (const auto date = answer.headers.find("date");
      error.code == "RequestTimeTooSkewed" && date != answer.headers.end()) {
    absl::StrAppend(&message, "; the server's clock says ", date->second);
  }
  if (!remedy.empty()) absl::StrAppend(&message, ". ", remedy);
  S3Verdict verdict = {absl::Status(rule.code, message), rule.again};
  verdict.other_keys =
      error.code == "ExpiredToken" || error.code == "InvalidToken" || error.code == "TokenRefreshRequired";
  return verdict;
}

}  // namespace lockstep
