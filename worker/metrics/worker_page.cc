#include "worker/metrics/worker_page.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/http/observing.h"
#include "common/metrics/metrics_text.h"
#include "common/version/version.h"

namespace lockstep::worker {
namespace {

struct Description {
  const char* name;
  const char* help;
};

// By the name of a statistic; what is not listed is not told.
const std::map<std::string, Description>& Counters() {
  static const auto* const counters = new std::map<std::string, Description>{
      {"steps", {"lockstep_replica_steps_total", "Steps that this process applied."}},
      {"samples", {"lockstep_replica_samples_total", "Samples that it computed."}},
      {"compute_seconds", {"lockstep_replica_compute_seconds_total", "Time it computed."}},
      {"all_reduce_seconds", {"lockstep_replica_all_reduce_seconds_total", "Time it waited for the others to reduce."}},
      {"data_seconds", {"lockstep_replica_data_seconds_total", "Time it waited for data."}},
      {"checkpoint_seconds", {"lockstep_replica_checkpoint_seconds_total", "Time it spent on snapshots."}},
      {"bytes_reduced", {"lockstep_replica_reduced_bytes_total", "Bytes that its collectives moved."}},
      {"bytes_uploaded", {"lockstep_replica_uploaded_bytes_total", "Bytes of state that it sent to the chief."}},
      {"redone_attempts", {"lockstep_replica_redone_attempts_total", "Attempts at a step that were made again."}},
  };
  return *counters;
}

}  // namespace

std::string WorkerMetricsText(const PresentWorker& present) {
  MetricsText metrics;
  metrics.Gauge("lockstep_replica_info", "Which worker this process is; always 1.", 1,
                {{"worker", present.name}, {"phase", present.phase}, {"version", kVersion}});
  metrics.Gauge("lockstep_replica_step", "Step of its state.", static_cast<double>(present.step));
  for (const NamedValue& value : present.statistics) {
    const auto counter = Counters().find(value.name);
    if (counter != Counters().end()) metrics.Counter(counter->second.name, counter->second.help, value.value);
    absl::string_view quantile = value.name;
    if (absl::ConsumePrefix(&quantile, "step_ms_p")) {
      metrics.Gauge("lockstep_replica_step_seconds", "Quantiles of the time of its newest steps.", value.value / 1e3,
                    {{"quantile", absl::StrCat("0.", quantile)}});
    }
  }
  metrics.Process();
  return metrics.Text();
}

absl::StatusOr<std::unique_ptr<HttpServer>> ServeWorkerPage(const std::string& listen,
                                                            std::function<PresentWorker()> present,
                                                            std::function<absl::Duration()> since_turn) {
  Health health;
  health.healthy = [since_turn] {
    const absl::Duration stands = since_turn();
    if (stands < kWorkerHealthy) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("the worker's loop has stood for ", absl::FormatDuration(stands)));
  };
  health.ready = [present, healthy = health.healthy] {
    const absl::Status status = healthy();
    if (!status.ok() || !present().name.empty()) return status;
    return absl::UnavailableError("no chief has taken this worker in yet");
  };
  HttpServer::Options options;
  options.listen = listen;
  options.quick = [health = std::move(health)](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (auto answer = AnswerHealth(request, health)) return answer;
    if (request.path == kMetricsPath) return std::nullopt;
    HttpResponse response;
    response.status = 404;
    response.body = "there are /healthz, /readyz and /metrics here; the job's page is the chief's\n";
    return response;
  };
  options.slow = [present = std::move(present)](const HttpRequest&) {
    HttpResponse response;
    response.content_type = kMetricsContentType;
    response.body = WorkerMetricsText(present());
    return response;
  };
  return HttpServer::Start(std::move(options));
}

}  // namespace lockstep::worker
