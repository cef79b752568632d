#include "common/http/observing.h"

#include <string>

namespace lockstep {

std::optional<HttpResponse> AnswerHealth(const HttpRequest& request, const Health& health) {
  if (request.path != "/healthz" && request.path != "/readyz") return std::nullopt;
  const absl::Status status = request.path == "/healthz" ? health.healthy() : health.ready();
  HttpResponse response;
  response.status = status.ok() ? 200 : 503;
  response.body = status.ok() ? "ok\n" : std::string(status.message()) + "\n";
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

}  // namespace lockstep
