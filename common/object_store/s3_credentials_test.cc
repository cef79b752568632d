#include "common/object_store/s3_credentials.h"

#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/object_store/http_client.h"
#include "common/object_store/test_http_server.h"

namespace lockstep {
namespace {

using Catch::Contains;
using Variables = std::map<std::string, std::string>;

Environment Of(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return std::nullopt;
    return found->second;
  };
}

std::string FileWith(const std::string& text) {
  static int last = 0;
  const char* const root = std::getenv("TEST_TMPDIR");
  const std::string path = absl::StrCat(root != nullptr ? root : "/tmp", "/aws-", getpid(), "-", ++last);
  std::ofstream(path) << text;
  return path;
}

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

struct Machine {
  Machine() {
    HttpClientOptions options;
    options.use_proxies = false;
    client = std::make_unique<HttpClient>(options);
  }
  absl::StatusOr<S3Credentials> Get(Variables variables) {
    variables.emplace("AWS_EC2_METADATA_DISABLED", "true");
    source = std::make_unique<S3CredentialsSource>(Of(std::move(variables)), client.get(), [this] { return now; });
    return source->Get();
  }
  absl::Time now = kNow;
  std::unique_ptr<HttpClient> client;
  std::unique_ptr<S3CredentialsSource> source;
};

std::string KeysText(const std::string& name, absl::Time expires) {
  return absl::StrCat(R"({"Code": "Success", "AccessKeyId": ")", name, R"(", "SecretAccessKey": "s", "Token": "t",)",
                      R"("Expiration": ")", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", expires, absl::UTCTimeZone()),
                      "\"}");
}

TEST_CASE("s3 credentials: the environment comes before the files", "[object_store]") {
  Machine machine;
  const std::string file = FileWith("[default]\naws_access_key_id = F\naws_secret_access_key = S\n");
  Variables variables = {{"AWS_SHARED_CREDENTIALS_FILE", file}};
  CHECK(machine.Get(variables)->access_key == "F");
  variables["AWS_ACCESS_KEY_ID"] = "E";
  CHECK(absl::IsPermissionDenied(machine.Get(variables).status()));
  variables["AWS_SECRET_ACCESS_KEY"] = "x";
  variables["AWS_SESSION_TOKEN"] = "token";
  const S3Credentials found = machine.Get(variables).value();
  CHECK(found.access_key == "E");
  CHECK(found.session_token == "token");
  CHECK(found.expires == absl::InfiniteFuture());
}

TEST_CASE("s3 credentials: a profile is read from both files, the credentials over the config", "[object_store]") {
  Machine machine;
  const std::string config = FileWith(
      "# comment\n[default]\nregion = eu-west-1\n\n[profile lab]\r\nregion=us-west-2 # here\naws_access_key_id = C\n"
      "aws_secret_access_key = c\ns3 =\n  addressing_style = virtual\n  other = 1\nendpoint_url = "
      "https://s3.lab:9000/\n");
  const std::string secrets =
      FileWith("[lab]\naws_access_key_id=A\naws_secret_access_key=a/b=+\naws_session_token=t\n");
  const Variables variables = {
      {"AWS_PROFILE", "lab"}, {"AWS_CONFIG_FILE", config}, {"AWS_SHARED_CREDENTIALS_FILE", secrets}};

  const S3Credentials found = machine.Get(variables).value();
  const S3Settings settings = ReadS3Settings(Of(variables)).value();

  CHECK(found.access_key == "A");
  CHECK(found.secret_key == "a/b=+");
  CHECK(found.session_token == "t");
  CHECK(settings.region == "us-west-2");
  CHECK(settings.endpoint == "https://s3.lab:9000");
  CHECK(settings.path_style == false);
  Variables other = variables;
  other["AWS_PROFILE"] = "none";
  CHECK_THAT(std::string(ReadS3Settings(Of(other)).status().message()), Contains("'none'") && Contains(config));
  other["AWS_PROFILE"] = "";
  CHECK(ReadS3Settings(Of(other))->region == "eu-west-1");
}

TEST_CASE("s3 credentials: a file that is named and missing, or damaged, is an error of a line", "[object_store]") {
  CHECK_THAT(std::string(ReadS3Settings(Of({{"AWS_CONFIG_FILE", "/nowhere"}})).status().message()),
             Contains("of AWS_CONFIG_FILE cannot be read: /nowhere: "));
  CHECK_THAT(std::string(ReadS3Settings(Of({{"AWS_CONFIG_FILE", "/proc"}})).status().message()),
             Contains("/proc: Is a directory"));
  CHECK(ReadS3Settings(Of({{"HOME", "/nowhere"}})).ok());
  const std::string bad = FileWith("[default]\nsecret words\n");
  const std::string message(ReadS3Settings(Of({{"AWS_CONFIG_FILE", bad}})).status().message());
  CHECK_THAT(message, Contains(bad + ":2: ") && !Contains("secret words"));
}

TEST_CASE("s3 settings: variables come before the profile, and wrong values are said", "[object_store]") {
  const auto settings = ReadS3Settings(Of({{"AWS_DEFAULT_REGION", "a"},
                                           {"AWS_REGION", "b"},
                                           {"AWS_ENDPOINT_URL", "http://one"},
                                           {"AWS_ENDPOINT_URL_S3", "http://two//"},
                                           {"LOCKSTEP_S3_ADDRESSING", "path"},
                                           {"AWS_CA_BUNDLE", "/ca"}}));
  REQUIRE(settings.ok());
  CHECK(settings->region == "b");
  CHECK(settings->endpoint == "http://two");
  CHECK(settings->path_style == true);
  CHECK(settings->ca_bundle == "/ca");
  CHECK(absl::IsInvalidArgument(ReadS3Settings(Of({{"AWS_ENDPOINT_URL", "host:9000"}})).status()));
  CHECK(absl::IsInvalidArgument(ReadS3Settings(Of({{"LOCKSTEP_S3_ADDRESSING", "x"}})).status()));
}

TEST_CASE("s3 credentials: the machine's metadata is asked with a token, and again before keys expire",
          "[object_store]") {
  Machine machine;
  std::atomic<int> fetched{0};
  std::atomic<bool> down{false};
  TestHttpServer server([&](const TestHttpServer::Request& request) -> HttpAnswer {
    if (down) return {503, {}, ""};
    if (request.target == "/latest/api/token") {
      const bool right = request.method == "PUT" && request.headers.count("x-aws-ec2-metadata-token-ttl-seconds") == 1;
      return {right ? 200 : 400, {}, "token-1"};
    }
    const auto token = request.headers.find("x-aws-ec2-metadata-token");
    if (token == request.headers.end() || token->second != "token-1") return {401, {}, ""};
    if (request.target == "/latest/meta-data/placement/region") return {200, {}, "eu-north-1"};
    if (request.target == "/latest/meta-data/iam/security-credentials/") return {200, {}, "trainer"};
    if (request.target != "/latest/meta-data/iam/security-credentials/trainer") return {404, {}, ""};
    const int number = ++fetched;
    return {200, {}, KeysText(absl::StrCat("M", number), kNow + absl::Hours(number))};
  });
  const Variables variables = {{"AWS_EC2_METADATA_DISABLED", ""}, {"AWS_EC2_METADATA_SERVICE_ENDPOINT", server.url()}};

  CHECK(machine.Get(variables)->access_key == "M1");
  CHECK(machine.source->Get()->session_token == "t");
  CHECK(machine.source->MachineRegion() == "eu-north-1");
  machine.now = kNow + absl::Minutes(54);
  CHECK(machine.source->Get()->access_key == "M1");
  machine.now = kNow + absl::Minutes(56);
  down = true;
  CHECK(machine.source->Get()->access_key == "M1");  // they are valid for some minutes
  down = false;
  CHECK(machine.source->Get()->access_key == "M1");  // the machine is not asked again at once
  machine.now += S3CredentialsSource::kPause;
  CHECK(machine.source->Get()->access_key == "M2");
  machine.source->Refuse();
  CHECK(machine.source->Get()->access_key == "M3");
  down = true;
  machine.now = kNow + absl::Hours(4);
  const absl::Status status = machine.source->Get().status();
  CHECK(absl::IsPermissionDenied(status));
  CHECK_THAT(std::string(status.message()), Contains("answers 503") && Contains("AWS_ACCESS_KEY_ID"));
}

TEST_CASE("s3 credentials: a container's endpoint is asked with its token, from trusted places alone",
          "[object_store]") {
  Machine machine;
  TestHttpServer server([&](const TestHttpServer::Request& request) -> HttpAnswer {
    const auto token = request.headers.find("authorization");
    if (request.target != "/keys?id=1" || token == request.headers.end()) return {403, {}, ""};
    return {200, {}, KeysText(token->second, kNow + absl::Hours(1))};
  });
  Variables variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", server.url() + "/keys?id=1"},
                         {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "variable"}};
  CHECK(machine.Get(variables)->access_key == "variable");
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = FileWith("file\n");
  CHECK(machine.Get(variables)->access_key == "file");
  variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/proc";
  CHECK_THAT(std::string(machine.Get(variables).status().message()), Contains("/proc: Is a directory"));
  for (const char* url : {"http://example.org/keys", "http://127.0.0.1@example.org/", "http://127.0.0.1.example.org/",
                          "file:///etc/passwd", "http://[::2]/"}) {
    variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    CHECK_THAT(std::string(machine.Get(variables).status().message()), Contains(url));
  }
}

}  // namespace
}  // namespace lockstep
