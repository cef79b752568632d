#include "chief/metrics/job_metrics.h"

#include <catch2/catch.hpp>
#include <limits>

namespace lockstep::chief {
namespace {

using Catch::Contains;

TEST_CASE("metrics: a job tells where it stands, where its time went and what its workers did", "[metrics]") {
  PresentJob present;
  present.status.set_job("mnist");
  present.status.set_phase("RUNNING");
  present.status.set_step(4402);
  present.status.set_end_step(9000);
  present.status.set_eta_seconds(81);
  present.status.set_waiting_for("1/2 workers");
  proto::NamedValue& accuracy = *present.status.add_evaluation();
  accuracy.set_name("accuracy");
  accuracy.set_value(0.9);
  present.status.add_workers()->set_state("member");
  present.status.add_workers()->set_state("member");
  JobStats& job = *present.stats.mutable_job();
  job.set_losses(3);
  job.mutable_goodput()->set_stepping(61.5);
  WorkerStats& worker = *present.stats.add_workers();
  worker.set_worker("worker-1");
  worker.set_host("b\"");
  worker.set_steps(12);

  const std::string text = JobMetricsText(present);

  for (const char* line :
       {"lockstep_job_step 4402\n", "lockstep_job_end_step 9000\n", "lockstep_job_phase{phase=\"RUNNING\"} 1\n",
        "lockstep_job_phase{phase=\"DONE\"} 0\n", "lockstep_job_remaining_seconds 81\n", "lockstep_job_waiting 1\n",
        "lockstep_job_evaluation{metric=\"accuracy\"} 0.9", "lockstep_job_losses_total 3\n",
        "lockstep_job_time_seconds_total{state=\"stepping\"} 61.5\n", "lockstep_job_workers{state=\"member\"} 2\n",
        "lockstep_job_workers{state=\"spare\"} 0\n",
        "lockstep_worker_steps_total{worker=\"worker-1\",host=\"b\\\"\"} 12\n", "process_resident_memory_bytes "}) {
    CHECK_THAT(text, Contains(line));
  }
}

TEST_CASE("metrics: what is not known is left out", "[metrics]") {
  PresentJob present;
  present.status.set_end_step(static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  present.status.set_eta_seconds(std::numeric_limits<double>::infinity());
  const std::string text = JobMetricsText(present);
  for (const char* name : {"lockstep_job_end_step", "lockstep_job_remaining_seconds", "lockstep_job_evaluation"}) {
    CHECK_THAT(text, !Contains(name));
  }
}

}  // namespace
}  // namespace lockstep::chief
