#include "common/http/page_access.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

const PageAccess access([](const std::string& credential) {
  return credential == "good" ? absl::OkStatus() : absl::PermissionDeniedError("not of this job");
});

HttpRequest Request(const std::string& target, const std::string& host, bool on_loopback) {
  HttpRequest request = ParseTarget(target).value();
  request.on_loopback = on_loopback;
  request.port = 29401;
  request.host = host;
  return request;
}

unsigned StatusOf(const std::optional<HttpResponse>& refusal) { return refusal.has_value() ? refusal->status : 200; }

std::string HeaderOf(const HttpResponse& response, const std::string& name) {
  for (const auto& [header, value] : response.headers) {
    if (header == name) return value;
  }
  return "";
}

TEST_CASE("page access: on loopback whoever names this machine is answered, and no other site's page", "[http]") {
  for (const char* host : {"localhost", "localhost:29401", "127.0.0.1:29401", "127.3.2.1", "[::1]:29401", "[::1]",
                           "LOCALHOST:1", "job.localhost:29401"}) {
    CAPTURE(host);
    CHECK_FALSE(access.Refuse(Request("/", host, true)).has_value());
  }
  for (const char* host : {"", "evil.example:29401", "127.0.0.1.evil.example", "localhost.evil.example:29401",
                           "127.0.0.1@evil.example", "10.0.0.1:29401", "127.evil.example"}) {
    CAPTURE(host);
    CHECK(StatusOf(access.Refuse(Request("/", host, true))) == 403);
  }
}

TEST_CASE("page access: beyond loopback a credential is asked for, as a header, a link or the link's cookie",
          "[http]") {
  CHECK(StatusOf(access.Refuse(Request("/api/job", "localhost", false))) == 401);

  HttpRequest program = Request("/metrics", "chief:29401", false);
  program.authorization = "Bearer good";
  CHECK_FALSE(access.Refuse(program).has_value());
  program.authorization = "Bearer bad";
  CHECK(StatusOf(access.Refuse(program)) == 401);
  program.authorization = "Basic good";
  CHECK(StatusOf(access.Refuse(program)) == 401);

  CHECK(StatusOf(access.Refuse(Request("/?token=bad", "chief:29401", false))) == 401);
  const std::optional<HttpResponse> link = access.Refuse(Request("/?token=good", "chief:29401", false));
  REQUIRE(StatusOf(link) == 303);
  CHECK(HeaderOf(*link, "Location") == "./");
  CHECK(HeaderOf(*link, "Set-Cookie") == "lockstep_29401=good; HttpOnly; SameSite=Lax; Path=/");

  // Nothing of a path gets into the head of the answer but what stands for itself there.
  const std::optional<HttpResponse> split = access.Refuse(Request("/%0d%0aX:1?token=good", "chief:29401", false));
  REQUIRE(StatusOf(split) == 303);
  CHECK(HeaderOf(*split, "Location") == "./");

  HttpRequest browser = Request("/api/job", "chief:29401", false);
  browser.cookie = "other=1; lockstep_29401=good";
  CHECK_FALSE(access.Refuse(browser).has_value());
  browser.cookie = "lockstep_29402=good";
  CHECK(StatusOf(access.Refuse(browser)) == 401);
}

TEST_CASE("http: a target is decoded once, and one that does not read is none", "[http]") {
  const std::optional<HttpRequest> request = ParseTarget("/api/series/worker%2Fa%20b?points=20&name=a+b%26c&flag");
  REQUIRE(request.has_value());
  CHECK(request->path == "/api/series/worker/a b");
  CHECK(request->query.at("points") == "20");
  CHECK(request->query.at("name") == "a b&c");
  CHECK(request->query.at("flag").empty());
  CHECK(ParseTarget("/%2541").value().path == "/%41");
  for (const char* bad : {"", "api", "*", "http://a/", "/%", "/%4", "/%zz", "/%00", "/?a=%g0"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseTarget(bad).has_value());
  }
}

}  // namespace
}  // namespace lockstep
