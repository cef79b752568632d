#include "deploy/cli/check_storage.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

using Catch::Contains;

std::string Fresh() {
  const char* const temporary = std::getenv("TEST_TMPDIR");
  return absl::StrCat(temporary != nullptr ? temporary : "/tmp", "/check-storage-", getpid());
}

TEST_CASE("check storage: a directory is proven, and is not there afterwards when it was not before", "[cli]") {
  Findings findings;
  CheckStorage(Fresh(), findings);
  CHECK_FALSE(findings.failed());
  REQUIRE_FALSE(findings.all().empty());
  CHECK(findings.all().front().what == "write");
  CHECK_THAT(findings.all().back().text, Contains("jobs are safe in " + Fresh()));
  CHECK_FALSE(std::filesystem::exists(Fresh()));
}

TEST_CASE("check storage: a place that is none is unusable (78)", "[cli]") {
  for (const char* place : {"s3://", "s3://UPPER/x", "/proc/version", "gs://bucket/x"}) {
    CAPTURE(place);
    Findings findings;
    CheckStorage(place, findings);
    CHECK(findings.exit_code() == kExitBadJob);
    CHECK_THAT(findings.all().back().text, Contains(place));
  }
}

TEST_CASE("check storage: a server that is not there is a failure of the storage (74), or keys are missing", "[cli]") {
  setenv("AWS_ENDPOINT_URL", "ftp://here", 1);
  Findings findings;
  CheckStorage("s3://models/x", findings);
  CHECK(findings.exit_code() == kExitBadJob);
  CHECK_THAT(findings.all().back().text, Contains("AWS_ENDPOINT_URL"));
  setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1", 1);
  setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
  setenv("AWS_CONFIG_FILE", "/dev/null", 1);
  setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
  Findings without_keys;
  CheckStorage("s3://models/x", without_keys);
  CHECK(without_keys.exit_code() == kExitStorage);
  CHECK_THAT(without_keys.all().front().text, Contains("no keys for S3"));
}

}  // namespace
}  // namespace lockstep::cli
