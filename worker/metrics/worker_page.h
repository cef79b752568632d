// A worker's health and metrics over HTTP (`lockstep worker --http`). No credential is asked for: what it tells are
// counts, times, and the worker's name.
//
//   /healthz   200 while the worker's loop turns
//   /readyz    200 once the chief has taken the worker in
//   /metrics   for Prometheus; docs/monitoring.md lists the names
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_METRICS_WORKER_PAGE_H_
#define LOCKSTEP_WORKER_METRICS_WORKER_PAGE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/http/http_server.h"
#include "common/protocol/messages.h"

namespace lockstep::worker {

// A worker as it is now.
struct PresentWorker {
  std::string name;                    // "": the chief has not taken it in yet
  std::string phase;                   // "stepping"
  uint64_t step = 0;                   // of its state
  std::vector<NamedValue> statistics;  // as it reports them to the chief
};

// The text of /metrics.
std::string WorkerMetricsText(const PresentWorker& present);

// How long the worker's loop may stand before /healthz says so.
inline constexpr absl::Duration kWorkerHealthy = absl::Seconds(10);

// Serves at `listen`, HOST:PORT. Neither function blocks. Codes as HttpServer::Start.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeWorkerPage(const std::string& listen,
                                                            std::function<PresentWorker()> present,
                                                            std::function<absl::Duration()> since_turn);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_METRICS_WORKER_PAGE_H_
