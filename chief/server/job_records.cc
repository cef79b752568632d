#include "chief/server/job_records.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "chief/events/markdown.h"
#include "chief/events/tensor_events.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr char kSampleTag[] = "samples/text";
constexpr size_t kMostSampleBytes = 16 << 10;
constexpr size_t kMostObservations = 256;

// A count that a worker reported; 0 if it is not a count, such as NaN.
int64_t CountOf(double reported) {
  constexpr double kMost = 1ull << 53;  // beyond it not every count has a double of its own
  return reported >= 0 && reported <= kMost ? static_cast<int64_t>(reported) : 0;
}

// A time that a worker reported; 0 if it is not a valid one.
double TimeOf(double reported) { return std::isfinite(reported) && reported >= 0 ? reported : 0; }

}  // namespace

JobRecords::JobRecords(Instant at, const Options& options)
    : term_(options.term),
      stats_(options.job, options.lineage, static_cast<int64_t>(options.term)),
      series_(options.global_batch),
      timeline_(static_cast<int64_t>(options.term)) {
  Goodput goodput;
  if (options.before.has_value()) {
    stats_.Continue(*options.before);
    goodput = options.before->job().goodput();
    goodput.set_no_chief(goodput.no_chief() + SecondsWithoutChief(options.before->job(), absl::ToUnixMillis(at.wall)));
  }
  goodput_.StartFrom(at.steady, goodput);
  timeline_.ChiefStarted(at.wall, options.step, options.checkpoint);
  history_.StartFrom(at.steady, stats_.Snapshot(at.steady));
  stats_.SetEndStep(options.end_step);
}

void JobRecords::Saw(Instant at, const std::vector<Action>& actions, TimelineRecorder::Present present) {
  for (const Action& action : actions) {
    const auto* const steps = std::get_if<StepsAgreed>(&action);
    if (steps == nullptr || steps->step == present.agreed_step) continue;
    present.agreed_step = steps->step;
    goodput_.Agreed(at.steady);  // before the phase that may follow
  }
  goodput_.EnterPhase(at.steady, present.phase);
  timeline_.Saw(at.wall, actions, present);
}

void JobRecords::Agreed(Instant at, const StepsAgreed& action, const Generation& generation, size_t members) {
  // An adopted generation was counted by the chief that formed it.
  if (generation_ != generation && generation.term == term_) stats_.GenerationFormed();
  generation_ = generation;
  stats_.Agreed(static_cast<int64_t>(action.step));
  for (const StepRecord& record : action.records) {
    const auto step = static_cast<int64_t>(record.step);
    if (step <= told_step_) series_.WentBack();
    told_step_ = step;
    events_.Trained(at.wall, told_step_, TrainingSeries::OfStep(record));
  }
  if (!action.records.empty()) TellSeries(at, members, /*at_end=*/false);
  TellObservations(at);
}

void JobRecords::Evaluated(Instant at, int64_t step, const std::vector<NamedValue>& metrics) {
  Scalars values;
  for (const NamedValue& value : metrics) values.emplace_back(absl::StrCat("evaluation/", value.name), value.value);
  events_.Measured(at.wall, step, values);
  const auto format = [](std::string* out, const NamedValue& value) {
    absl::StrAppend(out, value.name, " ", absl::StrFormat("%.6g", value.value));
  };
  timeline_.Evaluated(at.wall, step, absl::StrJoin(metrics, ", ", format));
}

void JobRecords::Sampled(Instant at, int64_t step, absl::string_view text) {
  events_.Noted(at.wall, step, kSampleTag, MarkdownBlock(text, kMostSampleBytes));
}

void JobRecords::Reported(Instant at, const WorkerCounters& action) {
  std::map<std::string, double> values;
  for (const NamedValue& value : action.stats) values[value.name] = value.value;
  series_.GradientNormed(CountOf(values["gradient_norm_step"]), values["gradient_norm"]);
  const auto [entry, first] = reports_.try_emplace(action.name, Report{at.steady, values});
  const Report before = std::exchange(entry->second, Report{at.steady, values});
  if (first) return;
  const auto grown = [&](const char* name) {
    const auto earlier = before.values.find(name);
    return values[name] - (earlier == before.values.end() ? 0 : earlier->second);
  };
  StepTimings timings;
  timings.steps = CountOf(grown("steps"));
  if (timings.steps > 0) {
    timings.total = at.steady - before.when;
    timings.compute = absl::Seconds(grown("compute_seconds"));
    timings.all_reduce = absl::Seconds(grown("all_reduce_seconds"));
    timings.data = absl::Seconds(grown("data_seconds"));
    timings.samples = CountOf(grown("samples"));
    timings.bytes_reduced = CountOf(grown("bytes_reduced"));
    stats_.Stepped(at.steady, action.name, timings);
    series_.Stepped(action.name, timings.steps, timings.total);
  }
  if (values.count("step_ms_p50") > 0) {
    stats_.SetStepQuantiles(action.name, TimeOf(values["step_ms_p50"]), TimeOf(values["step_ms_p95"]));
  }
  const int64_t uploaded = CountOf(grown("bytes_uploaded"));
  if (uploaded > 0) stats_.Uploaded(action.name, absl::Seconds(grown("checkpoint_seconds")), uploaded);
}

void JobRecords::Changed(Instant at, const WorkerChanged& action, absl::string_view host, absl::string_view device) {
  if (action.change != WorkerChange::kRefused) {
    series_.Changed(absl::StrCat(action.name, " ", ChangeName(action.change), ": ", action.reason));
  }
  switch (action.change) {
    case WorkerChange::kJoined:
      // A process that comes back counts on from what it reported last; where an earlier chief heard that, its first
      // report is what later ones are compared with.
      if (stats_.Joined(at.steady, action.name, host, device, action.incarnation.ToString())) {
        reports_[action.name] = {at.steady, {}};
      }
      break;
    case WorkerChange::kLost:
      stats_.Departed(action.name, Departure::kLost);
      break;
    case WorkerChange::kPreempted:
      stats_.Departed(action.name, Departure::kPreempted);
      break;
    case WorkerChange::kCrashed:
      stats_.Departed(action.name, Departure::kCrashed);
      break;
    case WorkerChange::kDigestMismatch:
      stats_.DigestMismatch(action.name);
      break;
    case WorkerChange::kRefused:
      break;
  }
}

void JobRecords::Observed(Instant at, const std::string& hook, int64_t step, const lockstep::Observed& observed) {
  if (observations_.size() >= kMostObservations) observations_.pop_front();
  observations_.push_back({hook, step, observed});
  TellObservations(at);
}

void JobRecords::TellObservations(Instant at) {
  std::deque<Observation> early;
  for (Observation& told : observations_) {
    if (told.step > told_step_) {
      early.push_back(std::move(told));
      continue;
    }
    const StateFacts& facts = told.observed.state();
    if (const Scalars values = StatisticsOf(facts); !values.empty()) events_.Measured(at.wall, told.step, values);
    if (const Histograms histograms = HistogramsOf(facts); !histograms.empty()) {
      events_.Counted(at.wall, told.step, histograms);
    }
    const std::string begin = absl::StrCat("hook ", told.hook, " of step ", told.step, ": ");
    if (!told.observed.note().empty()) LS_LOG(warn, begin, told.observed.note());
    for (const std::string& line : StatisticsLines(facts)) LS_LOG(info, begin, line);
  }
  observations_ = std::move(early);
}

void JobRecords::WentBack(Instant at, const lockstep::chief::WentBack& action) {
  observations_.clear();  // of states that were given up
  RepairStats repair;
  repair.set_at_ms(absl::ToUnixMillis(at.wall));
  repair.set_found_at(static_cast<int64_t>(action.found_at));
  repair.set_back_to(static_cast<int64_t>(action.step));
  repair.set_from_copy(action.from_copy);
  for (const std::string& name : action.names) repair.add_workers(name);
  for (const std::string& host : action.hosts) repair.add_hosts(host);
  stats_.WentBack(action.lineage, repair);
  series_.Changed(absl::StrCat("back to step ", action.step, ", replicas differed at step ", action.found_at, ": ",
                               absl::StrJoin(action.names, ", ")));
}

void JobRecords::Published(Instant at, int64_t step, const std::string& path) {
  stats_.Committed(step);
  events_.Published(at.wall, step, path);
  timeline_.Saved(at.wall, step, path);
}

void JobRecords::Ended(Instant at, const Exit& exit, bool completed) {
  stats_.Ended(exit.code, exit.reason, completed);
  timeline_.ChiefEnded(at.wall, exit.code, exit.reason);
}

void JobRecords::See(const CoordinatorView& view) {
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
}

WorkerStatsFile JobRecords::Stats(Instant at, const CoordinatorView& view) {
  See(view);
  stats_.SetGoodput(goodput_.Totals(at.steady), absl::ToUnixMillis(at.wall));
  return stats_.Snapshot(at.steady);
}

void JobRecords::TellSeries(Instant at, size_t members, bool at_end) {
  const TrainingSeries::Told told = series_.Take(at.steady, told_step_, members, stats_.job(), at_end);
  if (!told.values.empty()) events_.Measured(at.wall, told_step_, told.values);
  if (told.gradient.has_value()) {
    events_.Measured(at.wall, told.gradient->step, {{"gradient_norm", told.gradient->value}});
  }
  if (!told.changes.empty()) events_.Noted(at.wall, told_step_, TrainingSeries::kChangesTag, told.changes);
}

RecordBatch JobRecords::TakeAll(Instant at, const CoordinatorView& view, bool at_end) {
  RecordBatch batch;
  const WorkerStatsFile stats = Stats(at, view);
  batch.stats = EncodeWorkerStats(stats);
  batch.events = events_.Take();
  if (at_end || history_.Due(at.steady, static_cast<int>(reports_.size()))) {
    batch.history = history_.Take(at.steady, at.wall, stats);
  }
  batch.timeline = timeline_.Take();
  return batch;
}

RecordBatch JobRecords::TakeLast(Instant at, const CoordinatorView& view, size_t members) {
  if (told_step_ > 0) TellSeries(at, members, /*at_end=*/true);
  return TakeAll(at, view, /*at_end=*/true);
}

}  // namespace lockstep::chief
