#include "common/object_store/s3_xml.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr char kHead[] = R"(<?xml version="1.0" encoding="UTF-8"?>)"
                         "\n";

TEST_CASE("s3 xml: a page of a listing is read", "[object_store]") {
  const S3ListPage page =
      ParseListPage(absl::StrCat(kHead,
                                 R"(<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name>
      <IsTruncated>true</IsTruncated><NextContinuationToken>1ueG/a=</NextContinuationToken>
      <Contents><Key>log/a&apos;b</Key><LastModified>2026</LastModified><ETag>&quot;x&quot;</ETag><Size>12</Size></Contents>
      <Contents><Key>log/c</Key><Size>0</Size><StorageClass>STANDARD</StorageClass></Contents>
      <CommonPrefixes><Prefix>log/d/</Prefix></CommonPrefixes></ListBucketResult>)"))
          .value();
  CHECK(page.objects == std::vector<ListedObject>{{"log/a'b", 12}, {"log/c", 0}});
  CHECK(page.folders == std::vector<std::string>{"log/d/"});
  CHECK(page.next_token == "1ueG/a=");
  const S3ListPage last =
      ParseListPage("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>").value();
  CHECK(last.objects.empty());
  CHECK(last.next_token.empty());
}

TEST_CASE("s3 xml: an answer that is not the expected one is unavailable, never an empty listing", "[object_store]") {
  const std::string text = GENERATE(
      as<std::string>{}, "", "<html><body>login</body></html>", "{}", "<ListBucketResult>", "<ListBucketResult/>",
      "<Error><Code>x</Code></Error>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents>"
      "</ListBucketResult>");
  CAPTURE(text);
  CHECK(absl::IsUnavailable(ParseListPage(text).status()));
  CHECK(absl::IsUnavailable(ParseUploadsPage(text).status()));
  CHECK(absl::IsUnavailable(ParseUploadId(text).status()));
  CHECK(absl::IsUnavailable(ParseCompleted(text)));
}

TEST_CASE("s3 xml: errors are told from other answers, with the region that the server wants", "[object_store]") {
  const auto error =
      ParseS3Error(absl::StrCat(kHead,
                                "<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region 'us-east-1' is "
                                "wrong</Message><Region>eu-west-1</Region></Error>"));
  REQUIRE(error.has_value());
  CHECK(error->code == "AuthorizationHeaderMalformed");
  CHECK(error->region == "eu-west-1");
  CHECK_FALSE(ParseS3Error("<CompleteMultipartUploadResult/>").has_value());
  CHECK_FALSE(ParseS3Error("").has_value());
}

TEST_CASE("s3 xml: uploads and their ids are read", "[object_store]") {
  const S3UploadsPage page =
      ParseUploadsPage(
          "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
          "<NextUploadIdMarker>i</NextUploadIdMarker><Upload><Key>k</Key><UploadId>i</UploadId></Upload>"
          "</ListMultipartUploadsResult>")
          .value();
  REQUIRE(page.uploads.size() == 1);
  CHECK(page.uploads[0].key == "k");
  CHECK(page.next_id == "i");
  CHECK(ParseUploadId("<InitiateMultipartUploadResult><UploadId>2~ab</UploadId></InitiateMultipartUploadResult>")
            .value() == "2~ab");
}

TEST_CASE("s3 xml: the end of an upload names its parts", "[object_store]") {
  CHECK(ChecksumText(Crc32c("123456789")) == "4waSgw==");
  const UploadedPart part = {3, 7, "abc", Crc32c("123456789")};
  CHECK(CompletionBody({part}, false) ==
        "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Part>"
        "<ETag>\"abc\"</ETag><PartNumber>3</PartNumber></Part></CompleteMultipartUpload>");
  CHECK_THAT(CompletionBody({part}, true), Contains("<ChecksumCRC32C>4waSgw==</ChecksumCRC32C>"));
}

}  // namespace
}  // namespace lockstep
