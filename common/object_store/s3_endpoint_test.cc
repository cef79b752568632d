#include "common/object_store/s3_endpoint.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

std::string Made(S3Settings settings, const std::string& bucket) {
  const S3Endpoint endpoint = MakeS3Endpoint(settings, bucket).value();
  return absl::StrCat(endpoint.scheme, "://", endpoint.host, endpoint.base, " ", endpoint.region);
}

TEST_CASE("s3 endpoint: AWS by the bucket's name, others and names with dots by path", "[object_store]") {
  CHECK(Made({}, "models") == "https://models.s3.us-east-1.amazonaws.com us-east-1");
  CHECK(Made({"eu-west-3"}, "models") == "https://models.s3.eu-west-3.amazonaws.com eu-west-3");
  CHECK(Made({"cn-north-1"}, "models") == "https://models.s3.cn-north-1.amazonaws.com.cn cn-north-1");
  CHECK(Made({}, "a.b.c") == "https://s3.us-east-1.amazonaws.com/a.b.c us-east-1");
  CHECK(Made({"", "http://Host:7480"}, "models") == "http://host:7480/models us-east-1");
  CHECK(Made({"r", "https://host:443/s3/"}, "models") == "https://host/s3/models r");
  CHECK(Made({"", "http://host:80", "", false}, "models") == "http://models.host us-east-1");
  CHECK(Made({"", "", "", true}, "models") == "https://s3.us-east-1.amazonaws.com/models us-east-1");
}

TEST_CASE("s3 endpoint: an address that is none is refused", "[object_store]") {
  for (const char* address : {"host", "ftp://host", "http://", "http://me:secret@host", "http://host?x=1"}) {
    CAPTURE(address);
    CHECK(absl::IsInvalidArgument(MakeS3Endpoint({"", address}, "models").status()));
  }
}

}  // namespace
}  // namespace lockstep
