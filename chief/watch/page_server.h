// The HTTP server of a job: its page, the page's requests, metrics for Prometheus, and the health of this process.
//
//   /healthz, /readyz, /metrics   common/http/observing.h; the first two need no credential
//   /api/...                      requests of the page (page_api.h)
//   /, /page.css, ...             the page
//
// Threading: thread-safe.
#ifndef LOCKSTEP_CHIEF_WATCH_PAGE_SERVER_H_
#define LOCKSTEP_CHIEF_WATCH_PAGE_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "chief/watch/page_api.h"
#include "common/http/http_server.h"
#include "common/http/observing.h"
#include "common/http/page_access.h"

namespace lockstep::chief {

class PageServer {
 public:
  struct Options {
    std::string listen;  // HOST:PORT
    PageAccess::Check check_credential;
    Health health;
    // The text of /metrics; blocks for seconds at most. An error is answered with 503.
    std::function<absl::StatusOr<std::string>()> metrics;
  };

  // Starts to serve. Codes as HttpServer::Start. `api` outlives the server.
  static absl::StatusOr<std::unique_ptr<PageServer>> Start(Options options, PageApi* api);

  // The URL of the page: "http://127.0.0.1:29401/".
  std::string url() const;
  bool on_loopback() const { return server_->on_loopback(); }

 private:
  PageServer() = default;

  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_PAGE_SERVER_H_
