// What the loop keeps of a run beside its state: the workers' statistics, and TensorBoard's events. What it tells of
// workers.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/events/graph_event.h"
#include "chief/events/image_event.h"
#include "chief/server/chief_loop.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kStatsEvery = absl::Seconds(2);

// A count that a worker reported; 0 for what no count is, such as NaN.
int64_t CountOf(double reported) {
  constexpr double kMost = 1ull << 53;  // beyond it not every count has a double of its own
  return reported >= 0 && reported <= kMost ? static_cast<int64_t>(reported) : 0;
}

// A time that a worker reported; 0 for what is none.
double TimeOf(double reported) { return std::isfinite(reported) && reported >= 0 ? reported : 0; }

}  // namespace

void ChiefLoop::Perform(const WorkerCounters& action) {
  progress_.On(action);
  const absl::Time now = clock_.Now();
  std::map<std::string, double> values;
  for (const NamedValue& value : action.stats) values[value.name] = value.value;
  series_.GradientNormed(CountOf(values["gradient_norm_step"]), values["gradient_norm"]);
  const auto [entry, first] = worker_stats_.try_emplace(action.name, ReportedStats{now, values});
  const ReportedStats before = std::exchange(entry->second, ReportedStats{now, values});
  if (first) return;
  const auto grown = [&](const char* name) {
    const auto earlier = before.values.find(name);
    return values[name] - (earlier == before.values.end() ? 0 : earlier->second);
  };
  StepTimings timings;
  timings.steps = CountOf(grown("steps"));
  if (timings.steps > 0) {
    timings.total = now - before.when;
    timings.compute = absl::Seconds(grown("compute_seconds"));
    timings.all_reduce = absl::Seconds(grown("all_reduce_seconds"));
    timings.data = absl::Seconds(grown("data_seconds"));
    timings.samples = CountOf(grown("samples"));
    timings.bytes_reduced = CountOf(grown("bytes_reduced"));
    stats_.Stepped(now, action.name, timings);
    series_.Stepped(action.name, timings.steps, timings.total);
  }
  if (values.count("step_ms_p50") > 0) {
    stats_.SetStepQuantiles(action.name, TimeOf(values["step_ms_p50"]), TimeOf(values["step_ms_p95"]));
  }
  const int64_t uploaded = CountOf(grown("bytes_uploaded"));
  if (uploaded > 0) stats_.Uploaded(action.name, absl::Seconds(grown("checkpoint_seconds")), uploaded);
}

WorkerStatsFile ChiefLoop::StatsNow(absl::Time now) {
  const CoordinatorView view = core_.View();
  for (const auto& line : view.workers) {
    if (line.slowdown > 0) stats_.Compared(line.name, line.straggles, line.slowdown);
  }
  stats_.SetSaves(static_cast<int64_t>(view.saves_failed), static_cast<int64_t>(view.saves_skipped));
  std::vector<HostStats> hosts;
  for (const HostRecord& record : view.hosts) {
    HostStats& host = hosts.emplace_back();
    host.set_host(record.host);
    host.set_failures(record.failures);
    host.set_excluded(record.excluded);
    host.set_cause(record.cause);
  }
  stats_.SetHosts(std::move(hosts));
  if (!exit_.has_value()) stats_.SetHooks(hooks_->marks());
  stats_.SetGoodput(goodput_.Totals(now), absl::ToUnixMillis(absl::Now()));
  return stats_.Snapshot(now);
}

void ChiefLoop::See(absl::Time now, const std::vector<Action>& actions) {
  uint64_t agreed = agreed_step_;
  for (const Action& action : actions) {
    const auto* const steps = std::get_if<StepsAgreed>(&action);
    if (steps == nullptr || steps->step == agreed) continue;
    agreed = steps->step;
    goodput_.Agreed(now);  // before the phase that may follow
  }
  goodput_.EnterPhase(now, core_.phase());
  const auto members = [this] {
    std::map<int32_t, std::string> names;
    for (const auto& line : core_.View().workers) {
      if (line.rank >= 0) names[line.rank] = line.name;
    }
    std::vector<std::string> by_rank;
    for (auto& [rank, name] : names) by_rank.push_back(std::move(name));
    return by_rank;
  };
  timeline_.Saw(absl::Now(), actions, {core_.phase(), core_.generation(), agreed, members});
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
    const WorkerStats stats = stats_.StatsOf(now, line.name);
    worker.set_samples_per_second(stats.samples_per_second());
    worker.set_step_ms_p50(stats.step_ms_p50());
    worker.set_step_ms_p95(stats.step_ms_p95());
    const StepMeans means = stats_.MeansOf(now, line.name);
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
  for (const RepairStats& repair : stats_.repairs()) {
    proto::Repair& line = *reply.add_repairs();
    line.set_at_ms(static_cast<uint64_t>(repair.at_ms()));
    line.set_found_at(static_cast<uint64_t>(repair.found_at()));
    line.set_back_to(static_cast<uint64_t>(repair.back_to()));
    line.set_from_copy(repair.from_copy());
    *line.mutable_workers() = repair.workers();
    *line.mutable_hosts() = repair.hosts();
  }
}

void ChiefLoop::WriteStats(absl::Time now) {
  next_stats_ = now + kStatsEvery;
  if (stats_are_written_.exchange(true)) return;  // a slow disk must not gather a queue of them
  storage_.Post([this, json = EncodeStats(now), events = events_.Take(), history = TakeHistory(now, false),
                 timeline = timeline_.Take()] {
    event_backlog_.Write(events);
    history_backlog_.Write(history);
    timeline_backlog_.Write(timeline);
    WriteLog();
    absl::Status status = options_.store->WriteStats(json);
    status.Update(StoreMetagraphEvents());
    status.Update(keep_addresses_());
    // The one write of a chief that has nothing to save: here it learns that a newer one took the directory.
    if (IsFenced(status)) {
      Post(TermLost{options_.config.recovered.term + 1}, true);
    } else if (!status.ok() && !stats_failed_) {
      LS_LOG(warn, "worker statistics, addresses and the graph for TensorBoard: ", status.message(),
             "; they are written when the storage takes them");
    }
    stats_failed_ = !status.ok();
    stats_are_written_ = false;
  });
}

std::string ChiefLoop::TakeHistory(absl::Time now, bool at_end) {
  if (!at_end && !history_.Due(now, static_cast<int>(worker_stats_.size()))) return "";
  return history_.Take(now, absl::Now(), stats_.Snapshot(now));
}

void ChiefLoop::TellSeries(bool at_end) {
  const TrainingSeries::Told told = series_.Take(clock_.Now(), told_step_, core_.member_count(), stats_.job(), at_end);
  if (!told.values.empty()) events_.Measured(absl::Now(), told_step_, told.values);
  if (told.gradient.has_value()) {
    events_.Measured(absl::Now(), told.gradient->step, {{"gradient_norm", told.gradient->value}});
  }
  if (!told.changes.empty()) events_.Noted(absl::Now(), told_step_, TrainingSeries::kChangesTag, told.changes);
}

absl::Status ChiefLoop::StoreMetagraphEvents() {
  if (metagraph_events_stored_) return absl::OkStatus();
  const JobSetup& setup = *options_.setup;
  LS_RETURN_IF_ERROR(options_.store->StoreMetagraphEvents([&] {
    return absl::StrCat(GraphRecords(absl::Now(), setup.metagraph, setup.fingerprint, setup.account),
                        ImagesRecord(absl::Now(), setup.facts.images));
  }));
  metagraph_events_stored_ = true;
  return absl::OkStatus();
}

void ChiefLoop::FinishStorage() {
  storage_.Finish();
  if (told_step_ > 0) TellSeries(/*at_end=*/true);
  event_backlog_.Write(events_.Take());
  history_backlog_.Write(TakeHistory(clock_.Now(), /*at_end=*/true));
  timeline_backlog_.Write(timeline_.Take());
  WriteLog();
  for (const Backlog* backlog : {&event_backlog_, &history_backlog_, &timeline_backlog_, &log_backlog_}) {
    if (!backlog->empty()) LS_LOG(warn, backlog->what(), ": the newest were not written");
  }
}

void ChiefLoop::WriteLog() {
  if (options_.log != nullptr) log_backlog_.Write(options_.log->Take());
}

void ChiefLoop::KeepLastLines() {
  storage_.Finish();
  WriteLog();
}

void ChiefLoop::Perform(const WorkerChanged& action) {
  WriteSoon(clock_.Now());
  if (action.change != WorkerChange::kRefused) {
    series_.Changed(absl::StrCat(action.name, " ", ChangeName(action.change), ": ", action.reason));
  }
  switch (action.change) {
    case WorkerChange::kJoined: {
      const Worker* worker = core_.Find(action.incarnation);
      const std::string host = worker == nullptr ? "" : worker->host;
      const std::string device = worker == nullptr ? "" : worker->device;
      // A process that comes back counts on from what it reported last; where an earlier chief heard that, its first
      // report is what later ones are compared with.
      if (stats_.Joined(clock_.Now(), action.name, host, device, action.incarnation.ToString())) {
        worker_stats_[action.name] = {clock_.Now(), {}};
      }
      break;
    }
    case WorkerChange::kLost:
      stats_.Departed(action.name, Departure::kLost);
      break;
    case WorkerChange::kPreempted:
      stats_.Departed(action.name, Departure::kPreempted);
      break;
    case WorkerChange::kCrashed:
      stats_.Departed(action.name, Departure::kCrashed);
      return;  // an Announce says why
    case WorkerChange::kDigestMismatch:
      stats_.DigestMismatch(action.name);
      break;
    case WorkerChange::kRefused:
      return;  // an Announce says why
  }
  LogLineAbout(LogLevel::info, action.name, absl::StrCat(action.name, ": ", action.reason));
}

}  // namespace lockstep::chief
