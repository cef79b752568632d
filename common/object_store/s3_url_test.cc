#include "common/object_store/s3_url.h"

#include <catch2/catch.hpp>
#include <string>

#include "common/object_store/object_key.h"

namespace lockstep {
namespace {

using Catch::Contains;

TEST_CASE("s3 url: bucket and prefix are read, and one '/' at the end is ignored", "[object_store]") {
  CHECK(ParseS3Url("s3://models/runs/7").value() == S3Url{"models", "runs/7"});
  CHECK(ParseS3Url("s3://models/runs/7/").value() == S3Url{"models", "runs/7"});
  CHECK(ParseS3Url("s3://my.bucket-1").value() == S3Url{"my.bucket-1", ""});
  CHECK(ParseS3Url("s3://my.bucket-1/").value() == S3Url{"my.bucket-1", ""});
  CHECK(ToString({"models", "runs/7"}) == "s3://models/runs/7");
  CHECK(ToString({"models", ""}) == "s3://models");
}

TEST_CASE("s3 url: what is wrong is said with an example", "[object_store]") {
  const auto [text, words] = GENERATE(table<std::string, std::string>({
      {"http://models/a", "does not begin with s3://"},
      {"S3://models/a", "does not begin with s3://"},
      {"s3:/models", "does not begin with s3://"},
      {"s3://", "names no bucket"},
      {"s3:///a", "names no bucket"},
      {"s3://ab/x", "3 to 63"},
      {"s3://Models/x", "lower-case"},
      {"s3://a_b_c/x", "lower-case"},
      {"s3://-abc/x", "both ends"},
      {"s3://a..bc/x", "does not name a bucket"},
      {"s3://models//x", "empty part"},
      {"s3://models/x//", "empty part"},
      {"s3://models/a/../b", "'..'"},
      {"s3://models/a b", "character other than"},
      {"s3://models/a?x=1", "character other than"},
      {"s3://models/\n", "\\n"},
  }));
  CAPTURE(text);
  const absl::Status status = ParseS3Url(text).status();
  REQUIRE(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()), Contains(words) && Contains("s3://models/runs/7"));
  CHECK_FALSE(ParseS3Url("s3://models/" + std::string(kMaxPrefixBytes + 1, 'a')).ok());
}

TEST_CASE("s3 url: a place that is a URL of another kind is no directory", "[object_store]") {
  for (const char* place : {"gs://bucket/p", "file:///jobs/1", "https://host/bucket", "az+x://y"}) {
    CAPTURE(place);
    CHECK(IsUrl(place));
    const absl::Status refused = CheckPlace(place);
    CHECK(absl::IsInvalidArgument(refused));
    CHECK_THAT(std::string(refused.message()), Contains(place) && Contains("s3://BUCKET/PREFIX"));
  }
  for (const char* place : {"s3:models", "s3://UPPER/x", "s3:///x"}) {
    CAPTURE(place);
    CHECK(CheckPlace(place) == ParseS3Url(place).status());
    CHECK(absl::IsInvalidArgument(CheckPlace(place)));
  }
  for (const char* place : {"./gs://bucket/p", "/jobs/1", "jobs", "s3://models/7", "://", "a/b://c", ""}) {
    CAPTURE(place);
    CHECK(CheckPlace(place).ok());
  }
}

TEST_CASE("object key: plain parts alone are allowed", "[object_store]") {
  CHECK(CheckObjectKey("log/00000000000000000001").ok());
  CHECK(CheckObjectKey("checkpoints/step-7.t2-ab/model-00001-of-00002.safetensors").ok());
  for (const char* key : {"", "/a", "a/", "a//b", ".", "a/..", "a b", "a%20", "a?b", "a&b", "\xc3\xa9"}) {
    CAPTURE(key);
    CHECK(absl::IsInvalidArgument(CheckObjectKey(key)));
  }
  CHECK(CheckKeyPrefix("").ok());
  CHECK(CheckKeyPrefix("log/").ok());
  CHECK_FALSE(CheckKeyPrefix("a//").ok());
  CHECK(JoinKey("", "a") == "a");
  CHECK(JoinKey("p/q", "a") == "p/q/a");
}

}  // namespace
}  // namespace lockstep
