#include "chief/metrics/job_metrics.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator_view.h"
#include "chief/timeline/timeline_recorder.h"
#include "common/metrics/metrics_text.h"
#include "common/version/version.h"

namespace lockstep::chief {
namespace {

using Labels = MetricsText::Labels;

constexpr std::array<Phase, 8> kPhases = {Phase::kAdopting, Phase::kWaiting,   Phase::kForming, Phase::kRunning,
                                          Phase::kBreaking, Phase::kFinishing, Phase::kDone,    Phase::kEnded};

void AddProgress(const proto::StatusReply& status, MetricsText& metrics) {
  metrics.Gauge("lockstep_job_info", "What job this is; always 1.", 1,
                {{"job", status.job()}, {"lineage", status.lineage()}, {"version", kVersion}});
  for (const Phase phase : kPhases) {
    metrics.Gauge("lockstep_job_phase", "1 for the phase that the job is in.", PhaseName(phase) == status.phase(),
                  {{"phase", PhaseName(phase)}});
  }
  metrics.Gauge("lockstep_job_term", "Term of the chief that answers.", static_cast<double>(status.term()));
  metrics.Gauge("lockstep_job_step", "Newest agreed step.", static_cast<double>(status.step()));
  if (status.end_step() < static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    metrics.Gauge("lockstep_job_end_step", "Step at which the job is done; missing where a clock ends it.",
                  static_cast<double>(status.end_step()));
  }
  metrics.Gauge("lockstep_job_checkpoint_step", "Step of the newest checkpoint.",
                static_cast<double>(status.published_step()));
  metrics.Gauge("lockstep_job_loss", "Loss of the newest agreed step.", status.loss());
  metrics.Gauge("lockstep_job_samples_per_second", "Samples that the job trains per second, over the last seconds.",
                status.samples_per_second());
  if (std::isfinite(status.eta_seconds())) {
    metrics.Gauge("lockstep_job_remaining_seconds", "Time to the end of the job at the present speed.",
                  status.eta_seconds());
  }
  metrics.Gauge("lockstep_job_waiting", "1 while the job waits for workers.", !status.waiting_for().empty());
  metrics.Gauge("lockstep_job_storage_trouble", "1 while the storage refuses.", !status.storage_trouble().empty());
  for (const proto::NamedValue& value : status.evaluation()) {
    metrics.Gauge("lockstep_job_evaluation", "Values of the newest evaluation.", value.value(),
                  {{"metric", value.name()}});
  }
  if (status.evaluation_size() > 0) {
    metrics.Gauge("lockstep_job_evaluation_step", "Step of the newest evaluation.",
                  static_cast<double>(status.evaluation_step()));
  }
  metrics.Gauge("lockstep_job_failures", "Errors of workers that new checkpoints have not given back.",
                status.failures());
  metrics.Gauge("lockstep_job_failures_allowed", "Errors of workers at which the job stops.",
                static_cast<double>(status.failures_allowed()));
  metrics.Counter("lockstep_chief_refused_callers_total", "Callers without a credential of the job.",
                  static_cast<double>(status.refused_callers()));
}

void AddTotals(const JobStats& job, MetricsText& metrics) {
  const auto count = [&](const char* name, const char* help, int64_t value) {
    metrics.Counter(name, help, static_cast<double>(value));
  };
  count("lockstep_job_generations_total", "Generations that were formed.", job.generations());
  count("lockstep_job_joins_total", "Times that a worker joined.", job.joins());
  count("lockstep_job_preemptions_total", "Workers that left on notice.", job.preemptions());
  count("lockstep_job_losses_total", "Workers that were lost without notice.", job.losses());
  count("lockstep_job_crashes_total", "Workers that failed by an error or a crash signal.", job.crashes());
  count("lockstep_job_digest_mismatches_total", "Times that replicas differed.", job.digest_mismatches());
  count("lockstep_job_checkpoints_total", "Checkpoints that were published.", job.checkpoints());
  count("lockstep_job_checkpoints_failed_total", "Saves that were given up.", job.saves_failed());
  count("lockstep_job_checkpoints_skipped_total", "Saves that were due and not begun.", job.saves_skipped());
  count("lockstep_job_chief_starts_total", "Chiefs that the job has had.", job.chief_starts());
  count("lockstep_job_reduced_bytes_total", "Bytes that collectives moved.", job.bytes_reduced());
  const Goodput& goodput = job.goodput();
  for (const auto& [state, seconds] : std::map<std::string, double>{{"stepping", goodput.stepping()},
                                                                    {"stalled", goodput.stalled()},
                                                                    {"forming", goodput.forming()},
                                                                    {"waiting", goodput.waiting()},
                                                                    {"finishing", goodput.finishing()},
                                                                    {"no_chief", goodput.no_chief()}}) {
    metrics.Counter("lockstep_job_time_seconds_total",
                    "Where the job's time went; goodput is the share of state=\"stepping\".", seconds,
                    {{"state", state}});
  }
}

void AddWorkers(const PresentJob& present, MetricsText& metrics) {
  std::map<std::string, int> states{{"member", 0}, {"spare", 0}, {"joining", 0}, {"ready", 0}, {"leaving", 0}};
  for (const proto::WorkerStatus& worker : present.status.workers()) {
    if (worker.state() != kExcludedHost) ++states[worker.state()];
  }
  for (const auto& [state, workers] : states) {
    metrics.Gauge("lockstep_job_workers", "Workers that are connected, by state.", workers, {{"state", state}});
  }
  for (const WorkerStats& worker : present.stats.workers()) {
    const Labels labels = {{"worker", worker.worker()}, {"host", worker.host()}};
    const auto count = [&](const char* name, const char* help, double value) {
      metrics.Counter(name, help, value, labels);
    };
    metrics.Gauge("lockstep_worker_connected", "1 while the worker is connected.", worker.connected(), labels);
    metrics.Gauge("lockstep_worker_straggler", "1 while the others wait for it.", worker.straggler(), labels);
    metrics.Gauge("lockstep_worker_slowdown_ratio",
                  "Its own time per step over the median of the members; 0: not known.", worker.slowdown(), labels);
    count("lockstep_worker_steps_total", "Steps that the worker applied.", static_cast<double>(worker.steps()));
    count("lockstep_worker_samples_total", "Samples that it computed.", static_cast<double>(worker.samples()));
    count("lockstep_worker_step_seconds_total", "Time of its steps, with all waiting.", worker.step_seconds());
    count("lockstep_worker_compute_seconds_total", "Time it computed.", worker.compute_seconds());
    count("lockstep_worker_all_reduce_seconds_total", "Time it waited for the others to reduce.",
          worker.all_reduce_seconds());
    count("lockstep_worker_data_seconds_total", "Time it waited for data.", worker.data_seconds());
    count("lockstep_worker_checkpoint_seconds_total", "Time it spent on snapshots.", worker.checkpoint_seconds());
    count("lockstep_worker_reduced_bytes_total", "Bytes that its collectives moved.",
          static_cast<double>(worker.bytes_reduced()));
    count("lockstep_worker_uploaded_bytes_total", "Bytes of state that it sent to the chief.",
          static_cast<double>(worker.bytes_uploaded()));
    count("lockstep_worker_joins_total", "Times that it joined.", static_cast<double>(worker.joins()));
    count("lockstep_worker_preemptions_total", "Times that it left on notice.",
          static_cast<double>(worker.preemptions()));
    count("lockstep_worker_losses_total", "Times that it was lost.", static_cast<double>(worker.losses()));
    count("lockstep_worker_crashes_total", "Times that it failed.", static_cast<double>(worker.crashes()));
  }
}

}  // namespace

std::string JobMetricsText(const PresentJob& present) {
  MetricsText metrics;
  AddProgress(present.status, metrics);
  AddTotals(present.stats.job(), metrics);
  AddWorkers(present, metrics);
  metrics.Process();
  return metrics.Text();
}

}  // namespace lockstep::chief
