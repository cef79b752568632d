// The pages that every process of a job serves to monitoring programs: health, readiness and metrics.
//
//   /healthz   200 while this process works; 503, with the reason, when it should be restarted
//   /readyz    200 while it can fulfil its purpose; 503 with what it waits for
//   /metrics   for Prometheus
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_HTTP_OBSERVING_H_
#define LOCKSTEP_COMMON_HTTP_OBSERVING_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "common/http/http_message.h"

namespace lockstep {

// Neither blocks.
struct Health {
  std::function<absl::Status()> healthy;
  std::function<absl::Status()> ready;
};

inline constexpr char kMetricsPath[] = "/metrics";

// The answer to /healthz and /readyz; nullopt for other paths.
std::optional<HttpResponse> AnswerHealth(const HttpRequest& request, const Health& health);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_HTTP_OBSERVING_H_
