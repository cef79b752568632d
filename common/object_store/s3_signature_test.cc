#include "common/object_store/s3_signature.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

using Catch::Contains;

const S3Credentials kExample = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
const absl::Time kDay = absl::FromUnixSeconds(1369353600);  // 2013-05-24T00:00:00Z

S3Request Example(const std::string& method, const std::string& path) {
  S3Request request;
  request.method = method;
  request.host = "examplebucket.s3.amazonaws.com";
  request.path = path;
  return request;
}

std::string SignatureOf(const S3Request& request) {
  const std::string text = SignS3Request(request, kExample, "us-east-1", kDay).at("authorization");
  return text.substr(text.rfind('=') + 1);
}

// The examples of the S3 documentation, page "sig-v4-header-based-auth".
TEST_CASE("s3 signature: a GET of a range gives the published header", "[object_store]") {
  S3Request request = Example("GET", "/test.txt");
  request.headers = {{"range", "bytes=0-9"}};

  const auto headers = SignS3Request(request, kExample, "us-east-1", kDay);

  CHECK(headers.at("x-amz-date") == "20130524T000000Z");
  CHECK(headers.at("x-amz-content-sha256") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(headers.at("range") == "bytes=0-9");
  CHECK(headers.count("host") == 0);
  CHECK(headers.at("authorization") ==
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_CASE("s3 signature: a PUT whose key has to be encoded gives the published signature", "[object_store]") {
  S3Request request = Example("PUT", "/test$file.text");
  request.headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
  request.body = "Welcome to Amazon S3.";
  CHECK(SignatureOf(request) == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_CASE("s3 signature: queries without a value and with several give the published signatures", "[object_store]") {
  S3Request request = Example("GET", "/");
  request.query = {{"lifecycle", ""}};
  CHECK(SignatureOf(request) == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  CHECK(SignatureOf(request) == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("s3 signature: a session token is sent and signed", "[object_store]") {
  S3Credentials credentials = kExample;
  credentials.session_token = "token/1=";
  const auto headers = SignS3Request(Example("GET", "/"), credentials, "eu-central-1", kDay);
  CHECK(headers.at("x-amz-security-token") == "token/1=");
  CHECK_THAT(headers.at("authorization"), Contains("/eu-central-1/s3/") && Contains(";x-amz-security-token,"));
}

TEST_CASE("s3 signature: names and values are encoded as the signature wants it, and sorted", "[object_store]") {
  CHECK(S3Encode("a/b c~é+", true) == "a/b%20c~%C3%A9%2B");
  CHECK(S3Encode("a/b", false) == "a%2Fb");
  CHECK(S3Query({}).empty());
  CHECK(S3Query({{"start-after", "x/y"}, {"list-type", "2"}, {"uploads", ""}}) ==
        "list-type=2&start-after=x%2Fy&uploads=");
  CHECK(S3Query({{"a-", ""}, {"a:", ""}}) == "a%3A=&a-=");  // by what is sent
}

}  // namespace
}  // namespace lockstep
