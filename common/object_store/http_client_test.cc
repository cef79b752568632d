#include "common/object_store/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/object_store/test_http_server.h"

namespace lockstep {
namespace {

HttpClientRequest Ask(const std::string& method, const std::string& url, absl::string_view body = "") {
  HttpClientRequest request;
  request.method = method;
  request.url = url;
  request.body = body;
  return request;
}

// Answers with what it got.
HttpAnswer Echo(const TestHttpServer::Request& request) {
  HttpAnswer answer;
  answer.code = 207;
  answer.headers["X-Seen"] = absl::StrCat(request.method, " ", request.target);
  answer.headers["X-Length"] = request.headers.count("content-length") ? request.headers.at("content-length") : "none";
  answer.headers["X-Type"] = request.headers.count("content-type") ? request.headers.at("content-type") : "none";
  answer.body = request.body;
  return answer;
}

TEST_CASE("http client: methods, headers and bodies arrive as they were given", "[object_store]") {
  TestHttpServer server(Echo);
  HttpClient client({});
  const std::string body("a\0b\xff", 4);

  const HttpAnswer put = client.Send(Ask("PUT", server.url() + "/a/../b%20c?x=1&y=", body)).value();
  CHECK(put.code == 207);
  CHECK(put.headers.at("x-seen") == "PUT /a/../b%20c?x=1&y=");
  CHECK(put.headers.at("x-type") == "none");
  CHECK(put.body == body);
  CHECK(client.Send(Ask("PUT", server.url(), "")).value().headers.at("x-length") == "0");
  CHECK(client.Send(Ask("POST", server.url(), "")).value().headers.at("x-length") == "0");
  CHECK(client.Send(Ask("DELETE", server.url())).value().headers.at("x-seen") == "DELETE /");
  CHECK(client.Send(Ask("GET", server.url())).value().headers.at("x-length") == "none");
  const HttpAnswer head = client.Send(Ask("HEAD", server.url())).value();
  CHECK(head.headers.at("x-seen") == "HEAD /");
  CHECK(head.body.empty());
  CHECK(server.connections() == 1);
}

TEST_CASE("http client: large bodies go both ways on one connection", "[object_store]") {
  TestHttpServer server(Echo);
  HttpClient client({});
  std::string body(8 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 4099) body[i] = static_cast<char>(i % 251);
  for (int i = 0; i < 3; ++i) REQUIRE(client.Send(Ask("PUT", server.url(), body)).value().body == body);
  CHECK(server.connections() == 1);
}

TEST_CASE("http client: a longer answer than allowed is refused", "[object_store]") {
  TestHttpServer server([](const auto&) { return HttpAnswer{200, {}, std::string(1000, 'x')}; });
  HttpClient client({});
  HttpClientRequest request = Ask("GET", server.url());
  request.max_answer = 1000;
  CHECK(client.Send(request).ok());
  request.max_answer = 999;
  CHECK(absl::IsResourceExhausted(client.Send(request).status()));
}

TEST_CASE("http client: an answer that ends too early is none", "[object_store]") {
  TestHttpServer server([](const auto&) {
    return HttpAnswer{200, {{"content-length", "1000"}, {"connection", "close"}}, "too short"};
  });
  HttpClient client({});
  CHECK(absl::IsUnavailable(client.Send(Ask("GET", server.url())).status()));
}

TEST_CASE("http client: a connection that is closed or refused is unavailable", "[object_store]") {
  TestHttpServer server([](const auto&) { return HttpAnswer{}; });
  HttpClient client({});
  CHECK(absl::IsUnavailable(client.Send(Ask("GET", server.url() + "/key?secret=1")).status()));
  CHECK(absl::IsUnavailable(client.Send(Ask("GET", "http://127.0.0.1:1/")).status()));
  CHECK(absl::IsFailedPrecondition(client.Send(Ask("GET", "ftp://127.0.0.1:1/")).status()));
}

TEST_CASE("http client: a server that is silent is given up at the deadline", "[object_store]") {
  // Its queue of connections takes the request, and nobody reads it.
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener, 1) == 0);
  REQUIRE(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  HttpClientOptions options;
  HttpClientRequest request = Ask("GET", absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port)));
  SECTION("of the request") { request.timeout = absl::Milliseconds(50); }
  SECTION("of a stalled transfer") { options.stalled_after = absl::Seconds(1); }
  HttpClient client(options);
  const absl::Time start = SteadyNow();
  CHECK(absl::IsUnavailable(client.Send(request).status()));
  CHECK(SteadyNow() - start < absl::Seconds(15));  // the default of the other limit is 20 s or more
  close(listener);
}

TEST_CASE("http client: many threads use one client", "[object_store]") {
  TestHttpServer server(Echo);
  HttpClient client({});
  std::vector<std::thread> threads;
  std::vector<int> right(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 50; ++k) {
        const std::string body = absl::StrCat(i, ":", k);
        const auto answer = client.Send(Ask("PUT", server.url(), body));
        right[i] += answer.ok() && answer->body == body ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == std::vector<int>(8, 50));
  CHECK(server.connections() <= 8);
}

}  // namespace
}  // namespace lockstep
