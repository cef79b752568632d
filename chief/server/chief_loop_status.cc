// What the loop tells who asks how the job is.
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/server/chief_loop.h"

namespace lockstep::chief {

proto::StatusReply ChiefLoop::Describe() {
  const absl::Time now = clock_.Now();
  const CoordinatorView view = core_.View();
  const JobPolicy& policy = options_.config.policy;
  proto::StatusReply reply;
  reply.set_job(policy.job);
  reply.set_term(options_.config.recovered.term);
  reply.set_lineage(view.lineage);
  reply.set_phase(PhaseName(view.phase));
  reply.mutable_generation()->set_term(view.generation.term);
  reply.mutable_generation()->set_counter(view.generation.counter);
  reply.set_step(view.agreed_step);
  reply.set_end_step(policy.training.end_step);
  reply.set_published_step(view.published_step);
  reply.set_failures(view.failures);
  reply.set_failures_allowed(policy.max_failures);
  reply.set_preemptions(view.preemptions);
  reply.set_losses(view.losses);
  reply.set_waiting_for(view.waiting_for);
  reply.set_loss(progress_.loss());
  reply.set_samples_per_second(progress_.samples_per_second(now));
  reply.set_eta_seconds(progress_.eta_seconds(now));
  records_.See(view);
  const JobStats& totals = records_.stats().job();
  reply.set_saves_failed(static_cast<uint64_t>(totals.saves_failed()));
  reply.set_saves_skipped(static_cast<uint64_t>(totals.saves_skipped()));
  reply.set_storage_trouble(storage_watch_.stands().empty()
                                ? view.storage_trouble
                                : absl::StrCat("it does not answer: ", storage_watch_.stands()));
  reply.set_goodput(GoodputShare(records_.goodput(now)));
  DescribeWorkers(now, view, reply);
  for (const std::string& target : view.drained) reply.add_drained(target);
  DescribeRepairs(reply);
  const EvaluationBoard& board = progress_.board();
  reply.set_evaluation_step(board.step());
  reply.set_metric(board.metric());
  reply.set_best_step(board.best_step());
  reply.set_best_value(board.best_value());
  for (const NamedValue& value : board.metrics()) {
    proto::NamedValue& named = *reply.add_evaluation();
    named.set_name(value.name);
    named.set_value(value.value);
  }
  return reply;
}

void ChiefLoop::DescribeWorkers(absl::Time now, const CoordinatorView& view, proto::StatusReply& reply) const {
  for (const auto& line : view.workers) {
    proto::WorkerStatus& worker = *reply.add_workers();
    worker.set_name(line.name);
    worker.set_host(line.host);
    worker.set_state(line.state);
    worker.set_rank(line.rank);
    worker.set_device(line.device);
    worker.set_step(line.step);
    const WorkerStats stats = records_.stats().StatsOf(now, line.name);
    worker.set_samples_per_second(stats.samples_per_second());
    worker.set_step_ms_p50(stats.step_ms_p50());
    worker.set_step_ms_p95(stats.step_ms_p95());
    const StepMeans means = records_.stats().MeansOf(now, line.name);
    worker.set_step_ms(means.total_ms);
    worker.set_compute_ms(means.compute_ms);
    worker.set_all_reduce_ms(means.all_reduce_ms);
    worker.set_data_ms(means.data_ms);
    worker.set_slowdown(line.slowdown);
    worker.set_straggler(line.straggles);
    worker.set_joins(stats.joins());
    worker.set_preemptions(stats.preemptions());
    worker.set_losses(stats.losses());
    worker.set_crashes(stats.crashes());
  }
  for (const HostRecord& host : view.hosts) {
    if (!host.excluded) continue;
    proto::WorkerStatus& line = *reply.add_workers();
    line.set_host(host.host);
    line.set_state(kExcludedHost);
    line.set_rank(-1);
    line.set_device(absl::StrCat(host.failures, " failures, the last one: ", host.cause));
  }
}

void ChiefLoop::DescribeRepairs(proto::StatusReply& reply) const {
  for (const RepairStats& repair : records_.stats().repairs()) {
    proto::Repair& line = *reply.add_repairs();
    line.set_at_ms(static_cast<uint64_t>(repair.at_ms()));
    line.set_found_at(static_cast<uint64_t>(repair.found_at()));
    line.set_back_to(static_cast<uint64_t>(repair.back_to()));
    line.set_from_copy(repair.from_copy());
    *line.mutable_workers() = repair.workers();
    *line.mutable_hosts() = repair.hosts();
  }
}

}  // namespace lockstep::chief
