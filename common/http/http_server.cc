#include "common/http/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/net/listen.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;

constexpr uint32_t kMostHeaderBytes = 8 << 10;
constexpr size_t kMostReadAhead = 16 << 10;
constexpr int kSlowThreads = 2;

std::chrono::nanoseconds Chrono(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

bool IsLoopback(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return false;
  if (address.ss_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24) == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool IsV6(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 && address.ss_family == AF_INET6;
}

std::string Text(beast::string_view text) { return std::string(text.data(), text.size()); }

HttpResponse Refusal(unsigned status, std::string why) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(why) + "\n";
  return response;
}

}  // namespace

// All of it but the addresses. Its connections live on the thread `talking_`.
class HttpServer::Core {
 public:
  Core(Options options, bool on_loopback, int port)
      : options_(std::move(options)), on_loopback_(on_loopback), port_(port), slow_(kSlowThreads) {}

  ~Core() {
    ending_ = true;  // what waits for a handler is not handled any more
    asio::post(context_, [this] { CloseAll(); });
    slow_.join();  // handlers that run still post their answers
    work_.reset();
    context_.stop();
    if (talking_.joinable()) talking_.join();
  }

  void Accept(Listeners listeners) {
    for (Descriptor& socket : listeners.sockets) {
      const Tcp protocol = IsV6(socket.get()) ? Tcp::v6() : Tcp::v4();
      doors_.emplace_back(Tcp::acceptor(context_, protocol, socket.Release()), asio::steady_timer(context_));
    }
    for (Door& door : doors_) AcceptNext(door);
    talking_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "http");
      context_.run();
    });
  }

 private:
  class Connection;
  using Connections = std::list<std::shared_ptr<Connection>>;

  // What listens at one address, and when it tries again.
  struct Door {
    Door(Tcp::acceptor at, asio::steady_timer timer) : acceptor(std::move(at)), retry(std::move(timer)) {}
    Tcp::acceptor acceptor;
    asio::steady_timer retry;
  };

  void AcceptNext(Door& door) {
    door.acceptor.async_accept([this, &door](beast::error_code error, Tcp::socket socket) {
      if (error == asio::error::operation_aborted || closed_) return;
      if (!error) {
        Add(std::move(socket));
        return AcceptNext(door);
      }
      // No descriptors: a moment later there may be some.
      door.retry.expires_after(std::chrono::milliseconds(100));
      door.retry.async_wait([this, &door](beast::error_code) {
        if (!closed_) AcceptNext(door);
      });
    });
  }

  void Add(Tcp::socket socket);
  void CloseAll();

  // On a thread of `slow_`.
  HttpResponse Handle(const HttpRequest& request) const {
    if (ending_) return Refusal(503, "this server is ending");
    try {
      return options_.slow(request);
    } catch (const std::exception& error) {  // memory
      return Refusal(500, error.what());
    }
  }

  const Options options_;
  const bool on_loopback_;
  const int port_;
  asio::io_context context_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_{context_.get_executor()};
  std::list<Door> doors_;
  Connections connections_;  // the one that was silent longest first
  size_t waiting_ = 0;       // requests for `slow_`
  size_t answer_bytes_ = 0;  // of answers that callers have not taken yet
  bool closed_ = false;
  std::atomic<bool> ending_{false};
  asio::thread_pool slow_;
  std::thread talking_;
};

class HttpServer::Core::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Core* core, Tcp::socket socket) : core_(*core), stream_(std::move(socket)) {}

  void Begin(Connections::iterator self) {
    self_ = self;
    Read(kRequestLimit);
  }
  // Ends what is under way; the connection goes when that has returned.
  void Close() {
    beast::error_code ignored;
    stream_.socket().close(ignored);
  }
  // A handler is at its request.
  bool busy() const { return busy_; }

 private:
  void Read(absl::Duration limit) {
    parser_.emplace();
    parser_->header_limit(kMostHeaderBytes);
    parser_->body_limit(0);
    stream_.expires_after(Chrono(limit));
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](beast::error_code error, size_t) { self->OnHead(error); });
  }

  void OnHead(beast::error_code error) {
    if (error || core_.closed_) return End();
    core_.connections_.splice(core_.connections_.end(), core_.connections_, self_);
    const auto& head = parser_->get();
    keep_alive_ = head.keep_alive();
    is_head_ = head.method() == http::verb::head;
    const beast::string_view length = head[http::field::content_length];
    if ((!length.empty() && length != "0") || head.chunked()) {
      keep_alive_ = false;  // the body is not read
      return Answer(Refusal(413, "a request here has no body"));
    }
    if (!is_head_ && head.method() != http::verb::get) {
      HttpResponse refused = Refusal(405, "GET and HEAD are answered here");
      refused.headers.emplace_back("Allow", "GET, HEAD");
      return Answer(std::move(refused));
    }
    std::optional<HttpRequest> request = ParseTarget(absl::string_view(head.target().data(), head.target().size()));
    if (!request.has_value()) return Answer(Refusal(400, "this path does not read"));
    request->host = Text(head[http::field::host]);
    request->authorization = Text(head[http::field::authorization]);
    request->cookie = Text(head[http::field::cookie]);
    request->if_none_match = Text(head[http::field::if_none_match]);
    request->on_loopback = core_.on_loopback_;
    request->port = core_.port_;
    if (std::optional<HttpResponse> response = core_.options_.quick(*request)) return Answer(*std::move(response));
    if (core_.waiting_ >= kMostWaiting) return Answer(Refusal(503, "too many requests at once"));
    AnswerSlowly(*std::move(request));
  }

  void AnswerSlowly(HttpRequest request) {
    ++core_.waiting_;
    busy_ = true;
    stream_.expires_never();
    asio::post(core_.slow_, [self = this->shared_from_this(), request = std::move(request)] {
      auto response = std::make_shared<HttpResponse>(self->core_.Handle(request));
      asio::post(self->core_.context_, [self, response] {
        --self->core_.waiting_;
        self->busy_ = false;
        self->Answer(std::move(*response));
      });
    });
  }

  void Answer(HttpResponse answer) {
    if (core_.closed_) return End();
    if (core_.answer_bytes_ + answer.body.size() > kMostAnswerBytes) {
      answer = Refusal(503, "too many large answers at once");
    }
    response_ = {};
    response_.version(11);
    response_.result(answer.status);
    response_.set(http::field::content_type, answer.content_type);
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    for (const auto& [name, value] : answer.headers) response_.set(name, value);
    response_.keep_alive(keep_alive_);
    response_.content_length(answer.body.size());
    if (!is_head_) response_.body() = std::move(answer.body);
    core_.answer_bytes_ += response_.body().size();
    stream_.expires_after(Chrono(kAnswerLimit));
    http::async_write(stream_, response_,
                      [self = this->shared_from_this()](beast::error_code error, size_t) { self->OnWritten(error); });
  }

  void OnWritten(beast::error_code error) {
    core_.answer_bytes_ -= response_.body().size();
    response_.body().clear();
    if (error || !keep_alive_ || core_.closed_) return End();
    Read(kIdleLimit);
  }

  void End() {
    if (ended_) return;
    ended_ = true;
    beast::error_code ignored;
    stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
    Close();
    core_.connections_.erase(self_);  // this connection lives until its callers have returned
  }

  Core& core_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMostReadAhead};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  Connections::iterator self_;
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool busy_ = false;
  bool ended_ = false;
};

void HttpServer::Core::Add(Tcp::socket socket) {
  if (connections_.size() >= kMostConnections) {
    for (const std::shared_ptr<Connection>& oldest : connections_) {
      if (oldest->busy()) continue;
      oldest->Close();
      break;
    }
    if (connections_.size() >= kMostConnections * 2) return;  // those that were closed have not gone yet
  }
  connections_.push_back(std::make_shared<Connection>(this, std::move(socket)));
  connections_.back()->Begin(std::prev(connections_.end()));
}

void HttpServer::Core::CloseAll() {
  closed_ = true;
  beast::error_code ignored;
  for (Door& door : doors_) door.acceptor.close(ignored);
  for (const std::shared_ptr<Connection>& connection : connections_) connection->Close();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  LS_ASSIGN_OR_RETURN(const HostPort place, ParseHostPort(options.listen));
  LS_ASSIGN_OR_RETURN(Listeners listeners, ListenAt(place));
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->address_ = HostPort{place.host, listeners.port}.ToString();
  server->on_loopback_ = true;
  for (const Descriptor& socket : listeners.sockets) {
    server->on_loopback_ = server->on_loopback_ && IsLoopback(socket.get());
  }
  try {
    server->core_ = std::make_unique<Core>(std::move(options), server->on_loopback_, listeners.port);
    server->core_->Accept(std::move(listeners));
  } catch (const std::exception& error) {  // descriptors, threads
    return absl::ResourceExhaustedError(absl::StrCat("no server at ", server->address_, ": ", error.what()));
  }
  return server;
}

HttpServer::~HttpServer() = default;

}  // namespace lockstep
