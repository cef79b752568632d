#include "chief/stats/stats_tracker.h"

#include <algorithm>
#include <utility>

#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr int kMaxRepairs = 16;
constexpr absl::Duration kRateWindow = absl::Seconds(10);

}  // namespace

StatsTracker::StatsTracker(std::string job_id, std::string lineage, int64_t term) {
  totals_.set_format_version(1);
  totals_.set_job_id(std::move(job_id));
  totals_.set_lineage(std::move(lineage));
  totals_.set_term(term);
  totals_.mutable_job()->set_chief_starts(1);
}

void StatsTracker::Continue(const WorkerStatsFile& before) {
  const int64_t starts = totals_.job().chief_starts() + before.job().chief_starts();
  *totals_.mutable_job() = before.job();
  totals_.mutable_job()->set_chief_starts(starts);
  Ended(0, "", false);  // that was the chief before
  failed_before_ = before.job().saves_failed();
  skipped_before_ = before.job().saves_skipped();
  for (const WorkerStats& stats : before.workers()) {
    Worker& worker = workers_[stats.worker()];
    worker.stats = stats;
    worker.stats.set_connected(false);
    worker.stats.set_samples_per_second(0);
    worker.stats.set_straggler(false);
  }
  *totals_.mutable_hosts() = before.hosts();
  *totals_.mutable_repairs() = before.repairs();
}

StatsTracker::Worker& StatsTracker::Find(absl::string_view name) {
  auto it = workers_.find(name);
  if (it == workers_.end()) {
    it = workers_.emplace(std::string(name), Worker()).first;
    it->second.stats.set_worker(std::string(name));
  }
  return it->second;
}

bool StatsTracker::Joined(absl::Time now, absl::string_view name, absl::string_view host, absl::string_view device,
                          absl::string_view incarnation) {
  Worker& worker = Find(name);
  const bool other_process = worker.stats.incarnation() != incarnation;
  worker.stats.set_host(std::string(host));
  worker.stats.set_device(std::string(device));
  worker.stats.set_incarnation(std::string(incarnation));
  worker.stats.set_connected(true);
  worker.stats.set_joins(worker.stats.joins() + 1);
  worker.since = now;
  worker.recent.clear();
  totals_.mutable_job()->set_joins(totals_.job().joins() + 1);
  return other_process;
}

void StatsTracker::Departed(absl::string_view name, Departure how) {
  WorkerStats& stats = Find(name).stats;
  JobStats& job = *totals_.mutable_job();
  stats.set_connected(false);
  stats.set_straggler(false);
  switch (how) {
    case Departure::kPreempted:
      stats.set_preemptions(stats.preemptions() + 1);
      job.set_preemptions(job.preemptions() + 1);
      return;
    case Departure::kLost:
      stats.set_losses(stats.losses() + 1);
      job.set_losses(job.losses() + 1);
      return;
    case Departure::kCrashed:
      stats.set_crashes(stats.crashes() + 1);
      job.set_crashes(job.crashes() + 1);
      return;
  }
}

void StatsTracker::Stepped(absl::Time now, absl::string_view name, const StepTimings& timings) {
  if (timings.steps <= 0) return;
  Worker& worker = Find(name);
  WorkerStats& stats = worker.stats;
  stats.set_steps(stats.steps() + timings.steps);
  stats.set_samples(stats.samples() + timings.samples);
  stats.set_step_seconds(stats.step_seconds() + absl::ToDoubleSeconds(timings.total));
  stats.set_compute_seconds(stats.compute_seconds() + absl::ToDoubleSeconds(timings.compute));
  stats.set_all_reduce_seconds(stats.all_reduce_seconds() + absl::ToDoubleSeconds(timings.all_reduce));
  stats.set_data_seconds(stats.data_seconds() + absl::ToDoubleSeconds(timings.data));
  stats.set_bytes_reduced(stats.bytes_reduced() + timings.bytes_reduced);
  totals_.mutable_job()->set_bytes_reduced(totals_.job().bytes_reduced() + timings.bytes_reduced);
  worker.recent.push_back({now, timings});
  while (worker.recent.front().when <= now - kRateWindow) worker.recent.pop_front();
}

void StatsTracker::SetStepQuantiles(absl::string_view name, double p50_ms, double p95_ms) {
  WorkerStats& stats = Find(name).stats;
  stats.set_step_ms_p50(p50_ms);
  stats.set_step_ms_p95(p95_ms);
}

void StatsTracker::Uploaded(absl::string_view name, absl::Duration spent, int64_t bytes) {
  WorkerStats& stats = Find(name).stats;
  stats.set_checkpoint_seconds(stats.checkpoint_seconds() + absl::ToDoubleSeconds(spent));
  stats.set_bytes_uploaded(stats.bytes_uploaded() + bytes);
}

void StatsTracker::DigestMismatch(absl::string_view name) {
  WorkerStats& stats = Find(name).stats;
  stats.set_digest_mismatches(stats.digest_mismatches() + 1);
  stats.set_connected(false);
}

void StatsTracker::WentBack(absl::string_view lineage, const RepairStats& repair) {
  totals_.set_lineage(std::string(lineage));
  JobStats& job = *totals_.mutable_job();
  job.set_digest_mismatches(job.digest_mismatches() + 1);
  job.set_step(repair.back_to());
  *totals_.add_repairs() = repair;
  if (totals_.repairs_size() > kMaxRepairs) totals_.mutable_repairs()->DeleteSubrange(0, 1);
}

void StatsTracker::CommittedIs(int64_t step) { totals_.mutable_job()->set_committed_step(step); }

void StatsTracker::Compared(absl::string_view name, bool straggler, double slowdown) {
  WorkerStats& stats = Find(name).stats;
  stats.set_straggler(straggler);
  stats.set_slowdown(slowdown);
}

void StatsTracker::SetHosts(std::vector<HostStats> hosts) {
  totals_.clear_hosts();
  for (HostStats& host : hosts) *totals_.add_hosts() = std::move(host);
}

void StatsTracker::GenerationFormed() { totals_.mutable_job()->set_generations(totals_.job().generations() + 1); }

void StatsTracker::Agreed(int64_t step) { totals_.mutable_job()->set_step(step); }

void StatsTracker::Committed(int64_t step) {
  totals_.mutable_job()->set_committed_step(step);
  totals_.mutable_job()->set_checkpoints(totals_.job().checkpoints() + 1);
}

void StatsTracker::SetSaves(int64_t failed, int64_t skipped) {
  totals_.mutable_job()->set_saves_failed(failed_before_ + failed);
  totals_.mutable_job()->set_saves_skipped(skipped_before_ + skipped);
}

void StatsTracker::SetEndStep(int64_t step) { totals_.mutable_job()->set_end_step(step); }

void StatsTracker::Ended(int32_t exit_code, absl::string_view reason, bool completed) {
  totals_.mutable_job()->set_exit_code(exit_code);
  totals_.mutable_job()->set_ended(std::string(reason));
  totals_.mutable_job()->set_completed(completed);
}

void StatsTracker::SetGoodput(const Goodput& goodput, int64_t written_ms) {
  *totals_.mutable_job()->mutable_goodput() = goodput;
  totals_.mutable_job()->set_written_ms(written_ms);
}

void StatsTracker::SetTrained(absl::Duration trained) {
  totals_.mutable_job()->set_trained_seconds(absl::ToDoubleSeconds(trained));
}

lockstep::WorkerStats StatsTracker::StatsOf(absl::Time now, const Worker& worker) {
  WorkerStats stats = worker.stats;
  int64_t samples = 0;
  for (const Recent& recent : worker.recent) {
    if (recent.when > now - kRateWindow) samples += recent.timings.samples;
  }
  const double seconds = absl::ToDoubleSeconds(std::min(kRateWindow, now - worker.since));
  stats.set_samples_per_second(stats.connected() && seconds > 0 ? static_cast<double>(samples) / seconds : 0);
  return stats;
}

lockstep::WorkerStats StatsTracker::StatsOf(absl::Time now, absl::string_view name) const {
  const auto found = workers_.find(name);
  return found == workers_.end() ? WorkerStats() : StatsOf(now, found->second);
}

StepMeans StatsTracker::MeansOf(absl::Time now, absl::string_view name) const {
  const auto found = workers_.find(name);
  if (found == workers_.end() || found->second.recent.empty()) return {};
  StepTimings sum;
  for (const Recent& recent : found->second.recent) {
    if (recent.when <= now - kRateWindow && &recent != &found->second.recent.back()) continue;
    sum.steps += recent.timings.steps;
    sum.total += recent.timings.total;
    sum.compute += recent.timings.compute;
    sum.all_reduce += recent.timings.all_reduce;
    sum.data += recent.timings.data;
  }
  const auto each = [&](absl::Duration all) {
    return absl::ToDoubleMilliseconds(all) / static_cast<double>(sum.steps);
  };
  return {each(sum.total), each(sum.compute), each(sum.all_reduce), each(sum.data)};
}

WorkerStatsFile StatsTracker::Snapshot(absl::Time now) const {
  WorkerStatsFile file = totals_;
  double job_rate = 0;
  for (const auto& [name, worker] : workers_) {
    WorkerStats& stats = *file.add_workers();
    stats = StatsOf(now, worker);
    job_rate += stats.samples_per_second();
  }
  file.mutable_job()->set_samples_per_second(job_rate);
  return file;
}

std::string EncodeWorkerStats(const WorkerStatsFile& stats) { return ToJson(stats); }

absl::StatusOr<WorkerStatsFile> ParseWorkerStats(absl::string_view json, absl::string_view file) {
  WorkerStatsFile stats;
  LS_RETURN_IF_ERROR(FromJson(json, file, &stats));
  return stats;
}

}  // namespace lockstep::chief
