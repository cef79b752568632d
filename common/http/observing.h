// What programs ask every process of a job for: whether it is healthy, whether it is ready, its metrics.
//
//   /healthz   200 while this process does its work; 503, with the reason, when it should be started again
//   /readyz    200 while it can do what it is for; 503 with what it waits for
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
