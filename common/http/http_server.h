// Serves GET and HEAD over HTTP/1.1 to browsers and to Prometheus. It is read-only.
//
// Invariants
//   * A caller cannot make others wait: only slow handlers block, they run on threads of their own, and at most
//     kMostWaiting requests wait for them (503 for more).
//   * Until a caller has sent a whole request it costs a descriptor and at most 16 KiB, for at most kRequestLimit, or
//     kIdleLimit after its first request. Beyond kMostConnections the connection that has been silent longest is
//     closed.
//   * A request has no body; its head has at most 8 KiB.
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_HTTP_HTTP_SERVER_H_
#define LOCKSTEP_COMMON_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/http/http_message.h"

namespace lockstep {

class HttpServer {
 public:
  static constexpr size_t kMostConnections = 128;
  static constexpr size_t kMostWaiting = 64;
  static constexpr size_t kMostAnswerBytes = 64 << 20;  // of all answers not yet sent, together; 503 beyond
  static constexpr absl::Duration kRequestLimit = absl::Seconds(10);
  static constexpr absl::Duration kIdleLimit = absl::Seconds(65);  // between two requests of a connection
  static constexpr absl::Duration kAnswerLimit = absl::Seconds(60);

  struct Options {
    std::string listen;  // HOST:PORT; port 0: any free one
    // Answers requests that need no blocking; nullopt hands the request to `slow`. Runs on the thread that serves all
    // connections.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> quick;
    // Answers all other requests; may block. Runs on one of two threads.
    std::function<HttpResponse(const HttpRequest&)> slow;
  };

  // Listens and serves. InvalidArgument when `listen` is no address; FailedPrecondition, with the remedy, when it
  // cannot be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  // Closes every connection and waits for the handlers that run; requests that wait for a handler are dropped.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT as it listens.
  const std::string& address() const { return address_; }
  // Whether it is reachable from this machine only.
  bool on_loopback() const { return on_loopback_; }

 private:
  class Core;

  HttpServer() = default;

  std::string address_;
  bool on_loopback_ = false;
  std::unique_ptr<Core> core_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HTTP_HTTP_SERVER_H_
