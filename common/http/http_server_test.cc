#include "common/http/http_server.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/storage/descriptor.h"

namespace lockstep {
namespace {

using Catch::Contains;

// A raw connection: what a browser would not send can be sent.
class Caller {
 public:
  explicit Caller(const HttpServer& server) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    int port = 0;
    const std::string& address = server.address();
    REQUIRE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer.sin_port = htons(static_cast<uint16_t>(port));
    REQUIRE(connect(socket_.get(), reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) == 0);
  }

  void Send(const std::string& text) { send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }

  // An answer to GET or HEAD, head and body; what came until the connection was closed, where it was.
  std::string Answer(bool has_body = true) {
    std::string text;
    size_t wanted = std::string::npos;
    while (text.size() < wanted) {
      char bytes[4096];
      const ssize_t n = recv(socket_.get(), bytes, sizeof(bytes), 0);
      if (n <= 0) return text;
      text.append(bytes, static_cast<size_t>(n));
      const size_t end = text.find("\r\n\r\n");
      const size_t length = text.find("Content-Length: ");
      if (end == std::string::npos || length == std::string::npos) continue;
      wanted = end + 4 + (has_body ? std::stoul(text.substr(length + 16)) : 0);
    }
    return text;
  }

  // Some of it has come.
  bool HasAnswer() {
    char byte;
    return recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }

  bool Closed() { return Answer().empty(); }

 private:
  Descriptor socket_;
};

// Handlers that wait until they are let go.
class Gate {
 public:
  void Pass() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void AwaitInside(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return inside_ >= count; });
  }
  void Open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};

std::unique_ptr<HttpServer> Serve(std::function<HttpResponse(const HttpRequest&)> slow) {
  HttpServer::Options options;
  options.listen = "127.0.0.1:0";
  options.quick = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path != "/quick") return std::nullopt;
    HttpResponse response;
    response.body = "at once";
    return response;
  };
  options.slow = std::move(slow);
  return HttpServer::Start(std::move(options)).value();
}

HttpResponse Echo(const HttpRequest& request) {
  HttpResponse response;
  response.content_type = "text/html";
  response.body = absl::StrCat(request.path, "|", request.host, "|", request.authorization);
  return response;
}

TEST_CASE("http server: answers several requests of one connection, with the headers that browsers need", "[http]") {
  const auto server = Serve(Echo);
  CHECK(server->on_loopback());
  Caller caller(*server);
  for (const char* path : {"/a", "/b"}) {
    caller.Send(absl::StrCat("GET ", path, "?x=1 HTTP/1.1\r\nHost: here:1\r\nAuthorization: Bearer t\r\n\r\n"));
    const std::string answer = caller.Answer();
    CHECK_THAT(answer, Contains("HTTP/1.1 200 OK"));
    CHECK_THAT(answer, Contains("Content-Type: text/html"));
    CHECK_THAT(answer, Contains("X-Content-Type-Options: nosniff"));
    CHECK_THAT(answer, Contains(absl::StrCat(path, "|here:1|Bearer t")));
  }
  caller.Send("HEAD /quick HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string head = caller.Answer(/*has_body=*/false);
  CHECK_THAT(head, Contains("Content-Length: 7"));
  CHECK_THAT(head, !Contains("at once"));
  caller.Send("GET /quick HTTP/1.0\r\n\r\n");
  CHECK_THAT(caller.Answer(), Contains("at once"));
  CHECK(caller.Closed());
}

TEST_CASE("http server: what is no GET gets an answer or the end of its connection, and others are served", "[http]") {
  const auto server = Serve(Echo);
  const auto answer_to = [&](const std::string& text) {
    Caller caller(*server);
    caller.Send(text);
    return caller.Answer();
  };
  CHECK_THAT(answer_to("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"), Contains("405"));
  CHECK_THAT(answer_to("DELETE /a HTTP/1.1\r\nHost: h\r\n\r\n"), Contains("405"));
  CHECK_THAT(answer_to("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"), !Contains("200 OK"));
  CHECK_THAT(answer_to("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n"), !Contains("200 OK"));
  CHECK_THAT(answer_to("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"), Contains("400"));
  CHECK_THAT(answer_to("GET noslash HTTP/1.1\r\nHost: h\r\n\r\n"), Contains("400"));
  CHECK_THAT(answer_to(absl::StrCat("GET / HTTP/1.1\r\nX: ", std::string(20'000, 'x'), "\r\n\r\n")),
             !Contains("200 OK"));
  CHECK_THAT(answer_to("\x16\x03\x01\x02\n\n\n"), !Contains("200 OK"));
  CHECK_THAT(answer_to(std::string(100'000, '\0')), !Contains("200 OK"));
  CHECK_THAT(answer_to("GET /quick HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), Contains("at once"));
}

TEST_CASE("http server: a handler that blocks keeps no quick answer waiting, and too many requests are refused",
          "[http]") {
  Gate gate;
  const auto server = Serve([&](const HttpRequest& request) {
    gate.Pass();
    return Echo(request);
  });
  std::vector<std::unique_ptr<Caller>> blocked;
  for (size_t i = 0; i < HttpServer::kMostWaiting; ++i) {
    blocked.push_back(std::make_unique<Caller>(*server));
    blocked.back()->Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    if (i == 1) gate.AwaitInside(2);
  }
  Caller quick(*server);
  quick.Send("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK_THAT(quick.Answer(), Contains("at once"));
  std::vector<std::unique_ptr<Caller>> more;  // one of them comes when all places are taken
  const auto refused = [&] {
    for (const auto& caller : more) {
      if (caller->HasAnswer()) return true;
    }
    return false;
  };
  while (!refused()) {
    more.push_back(std::make_unique<Caller>(*server));
    more.back()->Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
    quick.Send("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK_THAT(quick.Answer(), Contains("at once"));
    REQUIRE(more.size() < HttpServer::kMostWaiting);
  }

  gate.Open();
  for (const auto& caller : blocked) CHECK_THAT(caller->Answer(), Contains("/slow|h|"));
}

TEST_CASE("http server: callers who send nothing give way to those who ask", "[http]") {
  const auto server = Serve(Echo);
  std::vector<std::unique_ptr<Caller>> silent;
  for (size_t i = 0; i < HttpServer::kMostConnections * 3; ++i) {
    silent.push_back(std::make_unique<Caller>(*server));
    silent.back()->Send("GET /half HT");
  }
  Caller caller(*server);
  caller.Send("GET /quick HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK_THAT(caller.Answer(), Contains("at once"));
  CHECK(silent.front()->Closed());
}

TEST_CASE("http server: its end closes connections and waits for a handler that runs", "[http]") {
  Gate gate;
  std::atomic<bool> ended{false};
  auto server = Serve([&](const HttpRequest& request) {
    gate.Pass();
    ended = true;
    return Echo(request);
  });
  Caller idle(*server), busy(*server);
  busy.Send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  gate.AwaitInside(1);
  gate.Open();
  server.reset();
  CHECK(ended);
  CHECK(idle.Closed());
}

TEST_CASE("http server: an address that cannot be had is refused with the remedy", "[http]") {
  const auto server = Serve(Echo);
  HttpServer::Options options;
  options.listen = server->address();
  options.quick = [](const HttpRequest&) { return std::nullopt; };
  options.slow = Echo;
  const absl::Status taken = HttpServer::Start(options).status();
  CHECK(absl::IsFailedPrecondition(taken));
  CHECK_THAT(std::string(taken.message()), Contains(server->address()));
  options.listen = "nowhere";
  CHECK(absl::IsInvalidArgument(HttpServer::Start(options).status()));
}

}  // namespace
}  // namespace lockstep
