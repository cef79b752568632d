// Serves GET and HEAD over HTTP/1.1 for people's browsers and for Prometheus. Nothing can be changed by it.
//
// Invariants
//   * A caller cannot make others wait: no call blocks but a handler, handlers run beside the thread that talks to
//     callers, and at most kMostWaiting requests wait for them (503 for more).
//   * A caller costs a descriptor and at most 16 KiB until it has sent a whole request, for kRequestLimit at most, or
//     kIdleLimit after its first request. Of
//     more than kMostConnections the one that has been silent longest is closed.
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
  static constexpr size_t kMostAnswerBytes = 64 << 20;  // that callers have not taken yet, together; 503 for more
  static constexpr absl::Duration kRequestLimit = absl::Seconds(10);
  static constexpr absl::Duration kIdleLimit = absl::Seconds(65);  // between two requests of a connection
  static constexpr absl::Duration kAnswerLimit = absl::Seconds(60);

  struct Options {
    std::string listen;  // HOST:PORT; port 0: any free one
    // Answers what it can without blocking. Runs on the thread that talks to all callers.
    std::function<std::optional<HttpResponse>(const HttpRequest&)> quick;
    // Answers the rest; may block. Runs on one of two threads.
    std::function<HttpResponse(const HttpRequest&)> slow;
  };

  // Listens and serves. InvalidArgument: `listen` is no address; FailedPrecondition, with the remedy: it cannot be had.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  // Closes every connection and waits for the handlers that run; what waits for them is dropped.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT as it listens.
  const std::string& address() const { return address_; }
  // Only this machine reaches it.
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
