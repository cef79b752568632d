// A worker's health and metrics over HTTP (`lockstep worker --http`). There is no authentication: the pages reveal only
// counts, times, and the worker's name.
//
//   /healthz   200 while the worker's session loop is responsive
//   /readyz    200 once the chief has accepted the worker
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

// The current state of a worker.
struct PresentWorker {
  std::string name;                    // "": the chief has not accepted it yet
  std::string phase;                   // "stepping"
  uint64_t step = 0;                   // of its state
  std::vector<NamedValue> statistics;  // those that it reports to the chief
};

// The text of /metrics.
std::string WorkerMetricsText(const PresentWorker& present);

// How long the worker's loop may be stuck before /healthz fails.
inline constexpr absl::Duration kWorkerHealthy = absl::Seconds(10);

// Serves at `listen` (HOST:PORT). `since_turn`: the time since the loop's last turn. `present` and `since_turn` are
// called by server threads and must not block. Codes as HttpServer::Start.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeWorkerPage(const std::string& listen,
                                                            std::function<PresentWorker()> present,
                                                            std::function<absl::Duration()> since_turn);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_METRICS_WORKER_PAGE_H_
