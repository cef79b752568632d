#include "worker/notice/http.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "worker/notice/fake_metadata_server.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

// Far longer than anything here takes: reached only when it never happens.
constexpr absl::Duration kHttpLimit = absl::Seconds(60);
constexpr int kNobodyCancels = -1;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST_CASE("http: an endpoint is an address in numbers, with a port or without", "[notice]") {
  CHECK(ParseEndpoint("http://169.254.169.254").value().port == 80);
  CHECK(ParseEndpoint("http://127.0.0.1:8080/").value().ToString() == "http://127.0.0.1:8080");
  CHECK(ParseEndpoint("http://[fd00:ec2::254]").value().host == "fd00:ec2::254");
  CHECK(ParseEndpoint("http://[::1]:81").value().ToString() == "http://[::1]:81");
  for (const char* text : {"", "127.0.0.1", "https://127.0.0.1", "http://", "http://localhost", "http://1.2.3",
                           "http://1.2.3.4:0", "http://1.2.3.4:65536", "http://1.2.3.4:80x", "http://1.2.3.4/path",
                           "http://[::1", "http://[1.2.3.4]", "http://::1"}) {
    CAPTURE(text);
    CHECK_THAT(Message(ParseEndpoint(text).status()), Contains("is no endpoint"));
  }
}

TEST_CASE("http: a reply is read by its length, by its chunks, or to the end of the stream", "[notice]") {
  const auto whole = [](absl::string_view bytes, bool ended) { return ParseReply(bytes, ended).value().value(); };

  CHECK(whole("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Y:  z \r\n\r\nTRUEmore", false).body == "TRUE");
  CHECK(whole("HTTP/1.1 200 OK\r\nX-Y:  z \r\n\r\n", true).headers.at("x-y") == "z");
  CHECK(whole("HTTP/1.0 404 Not Found\r\n\r\nto the end", true).body == "to the end");
  CHECK(
      whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", false)
          .body == "abc0123456789");
  CHECK(whole("HTTP/1.1 204 No Content\r\n\r\n", false).status == 204);
}

TEST_CASE("http: of a reply that is cut anywhere more is awaited, and its end there is an error", "[notice]") {
  for (const std::string bytes : {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nTRUE",
                                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"}) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      CAPTURE(bytes, size);
      const auto part = ParseReply(absl::string_view(bytes).substr(0, size), /*ended=*/false);
      REQUIRE(part.ok());
      CHECK_FALSE(part->has_value());
      CHECK(absl::IsDataLoss(ParseReply(absl::string_view(bytes).substr(0, size), /*ended=*/true).status()));
    }
    CHECK(ParseReply(bytes, false).value().has_value());
  }
}

TEST_CASE("http: what is no HTTP is refused as soon as that shows", "[notice]") {
  for (const char* bytes :
       {"SSH-2.0-OpenSSH", "\x16\x03\x01", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"}) {
    CAPTURE(bytes);
    CHECK(absl::IsDataLoss(ParseReply(bytes, false).status()));
  }
}

TEST_CASE("http: a request carries its method, target and headers", "[notice]") {
  std::string seen;
  FakeMetadataServer server([&](const std::string& request) {
    seen = request;
    return FakeMetadataServer::Reply(200, "a token");
  });

  const auto reply =
      Exchange(server.endpoint(), {"PUT", "/latest/api/token", {{"X-Ttl", "60"}}}, kHttpLimit, kNobodyCancels);

  REQUIRE(reply.ok());
  CHECK(reply->status == 200);
  CHECK(reply->body == "a token");
  CHECK_THAT(seen, Contains("PUT /latest/api/token HTTP/1.1\r\n") && Contains("\r\nX-Ttl: 60\r\n") &&
                       Contains("\r\nContent-Length: 0\r\n") && Contains("\r\nHost: 127.0.0.1:"));
}

TEST_CASE("http: a server that hangs, closes, floods or is not there is an error that names it", "[notice]") {
  std::string reply;
  FakeMetadataServer server([&](const std::string&) { return reply; });
  const auto ask = [&](absl::Duration limit) {
    return Exchange(server.endpoint(), {}, limit, kNobodyCancels).status();
  };

  SECTION("it hangs") {
    const absl::Status status = ask(absl::Milliseconds(20));
    CHECK(absl::IsDeadlineExceeded(status));
    CHECK_THAT(Message(status), Contains(server.endpoint().ToString()));
  }
  SECTION("it closes in the middle") {
    reply = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
    CHECK(absl::IsDataLoss(ask(kHttpLimit)));
  }
  SECTION("it floods") {
    reply = "HTTP/1.1 200 OK\r\n\r\n" + std::string(2 * kMaxHttpReply, 'x');
    CHECK(absl::IsDataLoss(ask(kHttpLimit)));
  }
  SECTION("nobody listens") {
    HttpEndpoint nobody;
    {
      const FakeMetadataServer gone([](const std::string&) { return ""; });
      nobody = gone.endpoint();
    }
    CHECK(absl::IsUnavailable(Exchange(nobody, {}, kHttpLimit, kNobodyCancels).status()));
  }
}

TEST_CASE("http: an exchange that is not awaited any more ends at once", "[notice]") {
  FakeMetadataServer server([](const std::string&) { return FakeMetadataServer::kHang; });
  const int cancel = eventfd(1, EFD_CLOEXEC);

  CHECK(absl::IsCancelled(Exchange(server.endpoint(), {}, kHttpLimit, cancel).status()));

  close(cancel);
}

}  // namespace
}  // namespace lockstep::worker
