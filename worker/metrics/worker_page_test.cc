#include "worker/metrics/worker_page.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

using Catch::Contains;

TEST_CASE("metrics: a worker tells what it reports to its chief, and nothing that it does not know", "[metrics]") {
  PresentWorker present{
      "worker-1", "stepping", 41, {{"steps", 41}, {"compute_seconds", 1.5}, {"step_ms_p95", 25}, {"gradient_norm", 3}}};
  const std::string text = WorkerMetricsText(present);
  for (const char* line :
       {"lockstep_replica_info{worker=\"worker-1\",phase=\"stepping\",version=\"", "lockstep_replica_step 41\n",
        "lockstep_replica_steps_total 41\n", "lockstep_replica_compute_seconds_total 1.5\n",
        "lockstep_replica_step_seconds{quantile=\"0.95\"} 0.025", "process_open_fds "}) {
    CHECK_THAT(text, Contains(line));
  }
  CHECK_THAT(text, !Contains("gradient_norm"));
  CHECK_THAT(text, !Contains("data_seconds"));
}

}  // namespace
}  // namespace lockstep::worker
