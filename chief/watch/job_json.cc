#include "chief/watch/job_json.h"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/checkpoint_format/naming.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kEvaluationPrefix = "evaluation/";
constexpr char kGone[] = "gone";  // the state of a worker that the chief does not know now

// JSON knows neither NaN nor infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

double PartOf(double part, double whole) { return whole > 0 ? part / whole : 0; }

// "3.7"
std::string GenerationText(const proto::Generation& generation) {
  return absl::StrCat(generation.term(), ".", generation.counter());
}

Json GoodputJson(const Goodput& goodput) {
  return {{"stepping", goodput.stepping()}, {"stalled", goodput.stalled()},     {"forming", goodput.forming()},
          {"waiting", goodput.waiting()},   {"finishing", goodput.finishing()}, {"no_chief", goodput.no_chief()}};
}

Json TotalsJson(const PresentJob& present) {
  const JobStats& job = present.stats.job();
  return {{"generations", job.generations()},
          {"joins", job.joins()},
          {"preemptions", job.preemptions()},
          {"losses", job.losses()},
          {"crashes", job.crashes()},
          {"digest_mismatches", job.digest_mismatches()},
          {"checkpoints", job.checkpoints()},
          {"saves_failed", job.saves_failed()},
          {"saves_skipped", job.saves_skipped()},
          {"chief_starts", job.chief_starts()},
          {"failures", present.status.failures()},
          {"failures_allowed", present.status.failures_allowed()}};
}

// The newest evaluation: as the chief tells it, or as the record has it. Null: nothing was evaluated.
Json EvaluationJson(const proto::StatusReply& status, const JobRecord& record) {
  Json evaluation = {{"values", Json::object()}};
  if (status.evaluation_size() > 0) evaluation["step"] = status.evaluation_step();
  for (const proto::NamedValue& value : status.evaluation()) evaluation["values"][value.name()] = Number(value.value());
  for (const auto& [tag, series] : record.scalars().series()) {
    if (status.evaluation_size() > 0 || series.empty() || !absl::StartsWith(tag, kEvaluationPrefix)) continue;
    evaluation["step"] = series.newest().last_step;
    evaluation["values"][tag.substr(kEvaluationPrefix.size())] = Number(series.newest().mean());
  }
  if (!status.metric().empty()) evaluation["metric"] = status.metric();
  if (status.best_step() > 0) {
    evaluation["best_step"] = status.best_step();
    evaluation["best_value"] = Number(status.best_value());
  }
  return evaluation["values"].empty() ? Json(nullptr) : evaluation;
}

void AddStats(const WorkerStats& stats, Json& worker) {
  worker["connected"] = stats.connected();
  worker["steps"] = stats.steps();
  worker["samples_per_second"] = Number(stats.samples_per_second());
  worker["step_ms"] = Number(stats.step_ms_p50());
  worker["step_ms_p95"] = Number(stats.step_ms_p95());
  worker["compute_share"] = PartOf(stats.compute_seconds(), stats.step_seconds());
  worker["all_reduce_share"] = PartOf(stats.all_reduce_seconds(), stats.step_seconds());
  worker["data_share"] = PartOf(stats.data_seconds(), stats.step_seconds());
  worker["straggler"] = stats.straggler();
  worker["slowdown"] = Number(stats.slowdown());
  worker["joins"] = stats.joins();
  worker["preemptions"] = stats.preemptions();
  worker["losses"] = stats.losses();
  worker["crashes"] = stats.crashes();
}

// Those that the chief knows now, and those that once were there.
Json WorkersJson(const PresentJob& present) {
  std::map<std::string, Json> by_name;
  for (const WorkerStats& stats : present.stats.workers()) {
    Json worker = {{"name", stats.worker()}, {"host", stats.host()}, {"device", stats.device()}, {"state", kGone}};
    AddStats(stats, worker);
    by_name[stats.worker()] = std::move(worker);
  }
  for (const proto::WorkerStatus& line : present.status.workers()) {
    if (line.state() == kExcludedHost) continue;
    Json& worker = by_name[line.name()];
    worker["name"] = line.name();
    worker["host"] = line.host();
    worker["device"] = line.device();
    worker["state"] = line.state();
    worker["rank"] = line.rank();
    worker["step"] = line.step();
  }
  Json workers = Json::array();
  for (auto& [name, worker] : by_name) workers.push_back(std::move(worker));
  return workers;
}

Json HostsJson(const WorkerStatsFile& stats) {
  Json hosts = Json::array();
  for (const HostStats& host : stats.hosts()) {
    hosts.push_back(
        {{"host", host.host()}, {"failures", host.failures()}, {"excluded", host.excluded()}, {"cause", host.cause()}});
  }
  return hosts;
}

Json CheckpointsJson(const JobRecord& record) {
  int64_t best_step = 0;
  for (const CheckpointSummary& checkpoint : record.checkpoints()) {
    if (!checkpoint.status.ok()) continue;
    best_step = checkpoint.manifest.evaluations().best_step();
    break;  // the newest knows it
  }
  Json checkpoints = Json::array();
  for (const CheckpointSummary& checkpoint : record.checkpoints()) {
    const Manifest& manifest = checkpoint.manifest;
    const int64_t step = layout::ParseStepName(checkpoint.name).value_or(manifest.step());
    Json line = {{"step", step}, {"path", checkpoint.path}, {"pinned", record.pinned().count(step) > 0}};
    if (!checkpoint.status.ok()) {
      line["damage"] = std::string(checkpoint.status.message());
    } else {
      uint64_t bytes = 0;
      for (const ManifestFile& file : manifest.files()) bytes += static_cast<uint64_t>(file.size());
      line["at_ms"] = manifest.written_ms();
      line["bytes"] = bytes;
      line["best"] = step > 0 && step == best_step;
      const Evaluations& evaluations = manifest.evaluations();
      if (evaluations.step() != 0 && evaluations.step() == step) {
        line["evaluation"] = Json{{"value", Number(evaluations.value())}};
      }
    }
    checkpoints.push_back(std::move(line));
  }
  return checkpoints;
}

Json WarningsJson(const PresentJob& present, const std::string& trouble) {
  Json warnings = Json::array();
  for (const HostStats& host : present.stats.hosts()) {
    if (host.excluded()) warnings.push_back(absl::StrCat("host ", host.host(), " is left out: ", host.cause()));
  }
  for (const WorkerStats& worker : present.stats.workers()) {
    if (worker.straggler() && worker.connected()) {
      warnings.push_back(absl::StrCat(worker.worker(), " is slow: the others wait for it"));
    }
  }
  if (present.status.saves_failed() > 0) {
    warnings.push_back(absl::StrCat(present.status.saves_failed(), " saves were given up"));
  }
  if (!trouble.empty()) warnings.push_back(absl::StrCat("what is shown may be old: ", trouble));
  return warnings;
}

}  // namespace

Json JobJson(const PresentJob& present, const JobRecord& record, const std::string& directory,
             const std::string& trouble, int64_t now_ms) {
  const proto::StatusReply& status = present.status;
  const bool bounded = status.end_step() > 0 && status.end_step() != std::numeric_limits<int64_t>::max();
  Json json = {{"now_ms", now_ms},
               {"live", present.live},
               {"job", status.job()},
               {"directory", directory},
               {"term", status.term()},
               {"lineage", status.lineage()},
               {"generation", GenerationText(status.generation())},
               {"phase", status.phase()},
               {"step", status.step()},
               {"published_step", status.published_step()},
               {"waiting_for", status.waiting_for()},
               {"storage_trouble", status.storage_trouble()},
               {"cause", present.cause}};
  if (bounded) json["end_step"] = status.end_step();
  if (present.exit_code.has_value()) json["exit_code"] = *present.exit_code;
  const auto loss = record.scalars().series().find("loss");
  if (present.live && status.step() > 0) {
    json["loss"] = Number(status.loss());
  } else if (loss != record.scalars().series().end() && !loss->second.empty()) {
    json["loss"] = Number(loss->second.newest().mean());
  }
  if (present.live) {
    json["samples_per_second"] = Number(status.samples_per_second());
    if (std::isfinite(status.eta_seconds())) json["eta_seconds"] = status.eta_seconds();
  }
  if (present.global_batch > 0) json["global_batch"] = present.global_batch;
  if (present.epoch_samples > 0) json["epoch_samples"] = present.epoch_samples;
  json["goodput"] = GoodputJson(present.stats.job().goodput());
  json["totals"] = TotalsJson(present);
  if (Json evaluation = EvaluationJson(status, record); !evaluation.is_null()) json["evaluation"] = evaluation;
  json["workers"] = WorkersJson(present);
  json["hosts"] = HostsJson(present.stats);
  json["drained"] = Json::array();
  for (const std::string& target : status.drained()) json["drained"].push_back(target);
  json["checkpoints"] = CheckpointsJson(record);
  json["warnings"] = WarningsJson(present, trouble);
  return json;
}

Json SeriesListJson(const ScalarHistory& scalars) {
  Json list = Json::array();
  for (const auto& [name, series] : scalars.series()) {
    if (!series.empty()) list.push_back({{"name", name}, {"points", series.size()}});
  }
  return {{"series", list}};
}

Json SeriesJson(const std::string& name, const ScalarSeries& series, int64_t from, int64_t to, size_t points) {
  const std::vector<ScalarSeries::Stretch> sample = series.Sample(from, to, points);
  Json steps = Json::array(), times = Json::array(), values = Json::array(), lows = Json::array(),
       highs = Json::array();
  bool joined = false;
  for (const ScalarSeries::Stretch& stretch : sample) {
    joined = joined || stretch.count > 1;
    steps.push_back(stretch.last_step);
    times.push_back(stretch.at_ms);
    values.push_back(Number(stretch.mean()));
    lows.push_back(Number(stretch.low));
    highs.push_back(Number(stretch.high));
  }
  Json json = {{"name", name}, {"total", series.size()}, {"step", steps}, {"at_ms", times}, {"value", values}};
  if (joined) {
    json["low"] = lows;
    json["high"] = highs;
  }
  return json;
}

Json TimelineJson(const JobRecord& record, int64_t from_ms, int64_t to_ms) {
  Json entries = Json::array();
  for (const TimelineEntry& entry : record.timeline()) {
    if (entry.at_ms() < from_ms || entry.at_ms() > to_ms) continue;
    Json line = {{"at_ms", entry.at_ms()}, {"kind", entry.kind()}, {"term", entry.term()}, {"step", entry.step()}};
    if (!entry.worker().empty()) line["worker"] = entry.worker();
    if (!entry.generation().empty()) line["generation"] = entry.generation();
    if (!entry.text().empty()) line["text"] = entry.text();
    if (entry.workers_size() > 0)
      line["workers"] = std::vector<std::string>(entry.workers().begin(), entry.workers().end());
    if (entry.kind() == "chief_ended") line["exit_code"] = entry.exit_code();
    entries.push_back(std::move(line));
  }
  return {{"entries", std::move(entries)}, {"left_out", record.timeline_left_out()}};
}

Json SamplesJson(const JobRecord& record) {
  Json samples = Json::array();
  for (const ModelSample& sample : record.samples()) {
    samples.push_back({{"step", sample.step}, {"text", sample.text}});
  }
  return {{"samples", samples}};
}

std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace lockstep::chief
