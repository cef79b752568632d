#include "common/object_store/s3_answer.h"

#include <catch2/catch.hpp>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using absl::StatusCode;
using Catch::Contains;

HttpAnswer Answer(int code, const std::string& error) {
  HttpAnswer answer;
  answer.code = code;
  if (!error.empty()) answer.body = absl::StrCat("<Error><Code>", error, "</Code><Message>why</Message></Error>");
  return answer;
}

TEST_CASE("s3 answer: each code has its status, and some may be sent again", "[object_store]") {
  const auto [code, error, status, again] = GENERATE(table<int, std::string, StatusCode, bool>({
      {404, "NoSuchKey", StatusCode::kNotFound, false},
      {404, "", StatusCode::kNotFound, false},
      {404, "NoSuchUpload", StatusCode::kNotFound, false},
      {404, "NoSuchBucket", StatusCode::kFailedPrecondition, false},
      {412, "PreconditionFailed", StatusCode::kAlreadyExists, false},
      {412, "", StatusCode::kAlreadyExists, false},
      {409, "ConditionalRequestConflict", StatusCode::kUnavailable, true},
      {429, "TooManyRequests", StatusCode::kUnavailable, true},
      {500, "InternalError", StatusCode::kUnavailable, true},
      {500, "", StatusCode::kUnavailable, true},
      {503, "SlowDown", StatusCode::kUnavailable, true},
      {503, "NoSuchBucket", StatusCode::kUnavailable, true},
      {200, "InternalError", StatusCode::kUnavailable, true},
      {200, "SlowDown", StatusCode::kUnavailable, true},
      {200, "InvalidPart", StatusCode::kInvalidArgument, false},
      {400, "RequestTimeout", StatusCode::kUnavailable, true},
      {501, "NotImplemented", StatusCode::kFailedPrecondition, false},
      {501, "", StatusCode::kFailedPrecondition, false},
      {403, "AccessDenied", StatusCode::kPermissionDenied, false},
      {403, "", StatusCode::kPermissionDenied, false},
      {403, "RequestTimeTooSkewed", StatusCode::kFailedPrecondition, false},
      {400, "BadDigest", StatusCode::kDataLoss, true},
      {416, "InvalidRange", StatusCode::kDataLoss, false},
      {400, "EntityTooSmall", StatusCode::kInvalidArgument, false},
      {403, "QuotaExceeded", StatusCode::kResourceExhausted, false},
      {301, "PermanentRedirect", StatusCode::kFailedPrecondition, false},
      {307, "", StatusCode::kFailedPrecondition, false},
      {400, "", StatusCode::kFailedPrecondition, false},
  }));
  CAPTURE(code, error);
  const S3Verdict verdict = JudgeS3Answer(Answer(code, error), false, "PUT s3://b/k");
  CHECK(verdict.status.code() == status);
  CHECK(verdict.again == again);
  CHECK_FALSE(verdict.other_keys);
  CHECK_THAT(std::string(verdict.status.message()), Contains(absl::StrCat("PUT s3://b/k answers ", code)));
}

TEST_CASE("s3 answer: messages say what to do", "[object_store]") {
  const auto message = [](HttpAnswer answer, bool conditional) {
    return std::string(JudgeS3Answer(answer, conditional, "PUT s3://b/k").status.message());
  };
  CHECK_THAT(message(Answer(501, ""), true), Contains("If-None-Match") && Contains("AWS S3, Ceph, MinIO"));
  CHECK_THAT(message(Answer(501, ""), false), !Contains("If-None-Match"));
  HttpAnswer moved = Answer(301, "PermanentRedirect");
  moved.headers["x-amz-bucket-region"] = "eu-west-1";
  CHECK_THAT(message(moved, false), Contains("'eu-west-1': set AWS_REGION"));
  HttpAnswer skewed = Answer(403, "RequestTimeTooSkewed");
  skewed.headers["date"] = "Tue, 24 Nov 2026 16:00:00 GMT";
  CHECK_THAT(message(skewed, false), Contains("24 Nov 2026") && Contains("clock"));
  CHECK(JudgeS3Answer(Answer(400, "ExpiredToken"), false, "").other_keys);
}

}  // namespace
}  // namespace lockstep
