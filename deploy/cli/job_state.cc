#include "deploy/cli/job_state.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/checkpoints_of_job.h"
#include "chief/stats/live_stats.h"
#include "chief/term/other_chief.h"
#include "chief/timeline/goodput_clock.h"
#include "chief/watch/present_job.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/job_place/job_place.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/columns.h"

namespace lockstep::cli {
namespace {

// A chief writes its statistics every 2 s: one that did so this recently lives, on another machine.
constexpr absl::Duration kLately = absl::Seconds(10);
constexpr char kDone[] = "DONE";
constexpr char kStopped[] = "STOPPED";
constexpr char kFailed[] = "FAILED";
constexpr char kNotRunning[] = "NOT_RUNNING";
constexpr char kUnreachable[] = "UNREACHABLE";

double Percentage(const proto::StatusReply& status) {
  return status.end_step() == 0 ? 0.0
                                : 100.0 * static_cast<double>(status.step()) / static_cast<double>(status.end_step());
}

absl::Time WrittenAt(const std::string& path) {
  struct stat file = {};
  return stat(path.c_str(), &file) == 0 ? absl::TimeFromTimespec(file.st_mtim) : absl::InfinitePast();
}

std::string Ago(absl::Time then, absl::Time now) {
  const int64_t seconds = absl::ToInt64Seconds(now - then);
  if (seconds <= 0) return "just now";
  const absl::Duration rounded = seconds < 3600 ? absl::Seconds(seconds) : absl::Minutes(seconds / 60);
  return absl::StrCat(absl::FormatDuration(rounded), " ago");
}

// "repaired <when>: replicas differed at step 48, back to step 32, kept in memory; worker-1 on b differed"
std::string RepairLine(const proto::Repair& repair) {
  std::vector<std::string> named;
  for (int i = 0; i < repair.workers_size(); ++i) {
    named.push_back(i < repair.hosts_size() ? absl::StrCat(repair.workers(i), " on ", repair.hosts(i))
                                            : repair.workers(i));
  }
  const absl::Time at = absl::FromUnixMillis(static_cast<int64_t>(repair.at_ms()));
  return absl::StrCat(
      "repaired ", absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", at, absl::UTCTimeZone()), ": replicas differed at step ",
      repair.found_at(), ", back to step ", repair.back_to(),
      repair.from_copy() ? ", kept in memory" : ", a checkpoint", "; ",
      named.empty() ? "nobody could be named" : absl::StrCat(EscapeControls(absl::StrJoin(named, ", ")), " differed"),
      "\n");
}

void AddRepairs(const WorkerStatsFile& stats, proto::StatusReply& status) {
  for (const RepairStats& repair : stats.repairs()) {
    proto::Repair& line = *status.add_repairs();
    line.set_at_ms(static_cast<uint64_t>(repair.at_ms()));
    line.set_found_at(static_cast<uint64_t>(repair.found_at()));
    line.set_back_to(static_cast<uint64_t>(repair.back_to()));
    line.set_from_copy(repair.from_copy());
    *line.mutable_workers() = repair.workers();
    *line.mutable_hosts() = repair.hosts();
  }
}

// A cell of a table, with blanks behind a short one.
std::string Padded(const std::string& text, size_t columns) {
  return absl::StrCat(text, std::string(columns - std::min(columns, ColumnsOf(text)), ' '));
}

// The chief's last statistics; nullopt where none were written yet.
absl::StatusOr<std::optional<WorkerStatsFile>> ReadStats(const Storage& storage) {
  absl::StatusOr<WorkerStatsFile> stats = chief::ReadLiveStats(storage);
  if (absl::IsNotFound(stats.status())) return std::optional<WorkerStatsFile>();
  LS_RETURN_IF_ERROR(stats.status());
  return std::optional<WorkerStatsFile>(*std::move(stats));
}

// What lies in the directory: the newest checkpoint, and the chief's last statistics.
absl::StatusOr<JobState> ReadPlace(const JobPlace& place, const std::string& directory) {
  const Storage& storage = place.storage();
  JobState state;
  LS_ASSIGN_OR_RETURN(const chief::CheckpointPaths paths, chief::CheckpointsOfJob(place));
  const absl::StatusOr<chief::CheckpointReader> newest = chief::OpenCheckpoint(storage, paths, std::nullopt);
  if (!newest.ok() && !absl::IsNotFound(newest.status())) return newest.status();
  if (newest.ok()) {
    state.status.set_job(newest->manifest().job_id());
    state.status.set_published_step(static_cast<uint64_t>(newest->manifest().step()));
    state.status.set_step(state.status.published_step());
  }
  state.status.set_phase(kNotRunning);
  state.when = WrittenAt(absl::StrCat(directory, "/", layout::kLiveStats));
  state.reason = "the chief ended without a word: it was killed, or its machine is gone";
  const absl::StatusOr<std::optional<WorkerStatsFile>> stats = ReadStats(storage);
  if (!stats.ok()) {
    state.reason = absl::StrCat("how the chief ended is not known, its last statistics cannot be read: ",
                                stats.status().message());
    return state;
  }
  if (!stats->has_value()) return state;  // nothing was trained yet
  const JobStats& job = (*stats)->job();
  state.status.set_job((*stats)->job_id());
  state.status.set_term(static_cast<uint64_t>((*stats)->term()));
  state.status.set_end_step(static_cast<uint64_t>(job.end_step()));
  state.status.set_saves_failed(static_cast<uint64_t>(job.saves_failed()));
  state.status.set_saves_skipped(static_cast<uint64_t>(job.saves_skipped()));
  state.status.set_goodput(chief::GoodputShare(job.goodput()));
  AddRepairs(**stats, state.status);
  state.stats = **stats;
  if (job.ended().empty()) return state;
  state.exit_code = job.exit_code();
  state.reason = job.ended();
  if (job.exit_code() != 0 && job.exit_code() != 75) {
    state.status.set_phase(kFailed);
  } else {
    state.status.set_phase(job.exit_code() == 0 && job.completed() ? kDone : kStopped);
  }
  return state;
}

// A bucket does not tell when something was written.
absl::StatusOr<bool> HoldsJob(const std::string& directory) {
  if (!IsInBucket(directory)) return WrittenAt(absl::StrCat(directory, "/", layout::kMark)) != absl::InfinitePast();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(directory));
  return place->storage().Exists(layout::kMark);
}

}  // namespace

bool HasEnded(const JobState& state) {
  const std::string& phase = state.status.phase();
  return !state.answered && phase != kUnreachable;
}

int ExitCodeOf(const JobState& state) { return state.answered || HasEnded(state) ? kExitDone : kExitChiefUnreachable; }

absl::StatusOr<JobState> ReadJobState(const std::string& directory, absl::Duration deadline) {
  LS_ASSIGN_OR_RETURN(const bool is_job, HoldsJob(directory));
  if (!is_job) {
    return absl::NotFoundError(absl::StrCat("no job in ", directory, ": it holds no file ", layout::kMark,
                                            ". Give the job's directory with --dir"));
  }
  auto client = AdminClient::ForDirectory(directory);
  absl::Status asked = client.status();
  if (client.ok()) {
    absl::StatusOr<proto::StatusReply> reply = (*client)->Status(deadline);
    if (reply.ok()) return JobState{*std::move(reply), true, std::nullopt, "", absl::Now(), std::nullopt};
    asked = reply.status();
  }
  if (absl::IsPermissionDenied(asked) || absl::IsUnauthenticated(asked)) return asked;
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(directory));
  LS_ASSIGN_OR_RETURN(JobState state, ReadPlace(*place, directory));
  const std::string where = client.ok() ? absl::StrCat(" at ", (*client)->address()) : "";
  const std::optional<std::string> holder =
      place->bucket() == nullptr ? chief::LockHolderHere(place->storage()) : std::nullopt;
  if (holder.has_value()) {
    state.status.set_phase(kUnreachable);
    state.reason = absl::StrCat(*holder, " has the directory but does not answer", where,
                                ": it is starting, or stopped, or too busy");
  } else if (!state.exit_code.has_value() && absl::Now() - state.when < kLately) {
    state.status.set_phase(kUnreachable);
    state.reason = absl::StrCat("its chief does not answer", where,
                                ", and wrote to the directory a moment ago: it was killed just now, or it runs on a "
                                "machine that this one does not reach");
  }
  if (!HasEnded(state)) state.exit_code.reset();
  return state;
}

std::string JobStateJson(const JobState& state, bool compact) {
  const proto::StatusReply& status = state.status;
  nlohmann::json json = nlohmann::json::parse(ToJson(status));
  const bool has_eta = state.answered && std::isfinite(status.eta_seconds());
  // JSON knows neither NaN nor infinity: the proto's text has them as strings.
  for (const char* name : {"loss", "best_value", "samples_per_second", "eta_seconds"}) {
    if (json[name].is_string()) json[name] = nullptr;
  }
  if (!has_eta) json["eta_seconds"] = nullptr;
  for (nlohmann::json& metric : json["evaluation"]) {
    if (metric["value"].is_string()) metric["value"] = nullptr;
  }
  json["progressPercentage"] = static_cast<int>(Percentage(status));
  json["estimatedRemainingSeconds"] = has_eta ? static_cast<int64_t>(status.eta_seconds()) : 0;
  json["lastUpdatedTime"] = nullptr;
  if (state.when != absl::InfinitePast()) {
    json["lastUpdatedTime"] = absl::FormatTime(absl::RFC3339_sec, state.when, absl::UTCTimeZone());
  }
  json["metrics"] = nlohmann::json::array();
  if (state.answered) json["metrics"].push_back({{"name", "loss"}, {"value", status.loss()}});
  for (const auto& metric : status.evaluation()) {
    json["metrics"].push_back({{"name", absl::StrCat("eval_", metric.name())}, {"value", metric.value()}});
  }
  json["running"] = state.answered;
  json["exit_code"] = nullptr;
  if (state.exit_code.has_value()) json["exit_code"] = *state.exit_code;
  json["reason"] = state.reason;
  return absl::StrCat(json.dump(compact ? -1 : 2, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

std::string JobStateText(const JobState& state, absl::Time now) {
  const proto::StatusReply& status = state.status;
  const bool bounded = status.end_step() > 0 && status.end_step() != std::numeric_limits<int64_t>::max();
  std::string text = absl::StrFormat("%s  step %d", status.phase(), status.step());
  if (bounded) absl::StrAppendFormat(&text, "/%d  %d%%", status.end_step(), static_cast<int>(Percentage(status)));
  if (!state.answered) {
    absl::StrAppend(&text, "\nsaved step ", status.published_step(), "\n");
    if (state.when != absl::InfinitePast()) {
      absl::StrAppend(&text, HasEnded(state) ? "" : "last heard of ", Ago(state.when, now), ": ");
    }
    absl::StrAppend(&text, EscapeControls(state.reason), "\n");
    if (status.phase() == kFailed) {
      absl::StrAppend(&text, "once the cause is mended, the same command goes on from step ", status.published_step(),
                      "\n");
    } else if (HasEnded(state) && status.phase() != kDone) {
      absl::StrAppend(&text, "the command that started it goes on from step ", status.published_step(), "\n");
    }
    for (const proto::Repair& repair : status.repairs()) absl::StrAppend(&text, RepairLine(repair));
    return text;
  }
  const std::string eta = std::isfinite(status.eta_seconds())
                              ? absl::FormatDuration(absl::Seconds(static_cast<int64_t>(status.eta_seconds())))
                              : "-";
  absl::StrAppendFormat(&text, "  loss %.4g  %.0f samples/s  ETA %s", status.loss(), status.samples_per_second(), eta);
  if (status.goodput() > 0) absl::StrAppendFormat(&text, "  goodput %.0f%%", 100 * status.goodput());
  absl::StrAppend(&text, "\n");
  absl::StrAppendFormat(&text, "saved step %d  failures %d/%d  preemptions %d  losses %d  refused callers %d\n",
                        status.published_step(), status.failures(), status.failures_allowed(), status.preemptions(),
                        status.losses(), status.refused_callers());
  for (const auto& metric : status.evaluation()) {
    absl::StrAppendFormat(&text, "evaluated at step %d: %s %.4f\n", status.evaluation_step(), metric.name(),
                          metric.value());
  }
  if (status.best_step() > 0) {
    absl::StrAppendFormat(&text, "best at step %d: %s %.4f\n", status.best_step(), status.metric(),
                          status.best_value());
  }
  for (const auto& worker : status.workers()) {
    if (worker.state() == chief::kExcludedHost) {
      absl::StrAppend(&text, "  host ", EscapeControls(worker.host()),
                      " is left out: ", EscapeControls(worker.device()), "\n");
      continue;
    }
    absl::StrAppendFormat(&text, "  %s %-8s rank %d  step %d  %s  %s\n", Padded(EscapeControls(worker.name()), 12),
                          worker.state(), worker.rank(), worker.step(), EscapeControls(worker.host()),
                          EscapeControls(worker.device()));
  }
  for (const proto::Repair& repair : status.repairs()) absl::StrAppend(&text, RepairLine(repair));
  if (status.saves_failed() + status.saves_skipped() > 0) {
    absl::StrAppend(&text, "saves: ", status.saves_failed(), " given up, ", status.saves_skipped(), " left out\n");
  }
  if (!status.storage_trouble().empty()) {
    absl::StrAppend(&text, "storage: ", EscapeControls(status.storage_trouble()), "\n");
  }
  if (status.drained_size() > 0) {
    absl::StrAppend(&text, "drained: ", EscapeControls(absl::StrJoin(status.drained(), ", ")), "\n");
  }
  if (!status.waiting_for().empty()) {
    absl::StrAppend(&text, "waiting for ", EscapeControls(status.waiting_for()), "\n");
  }
  return text;
}

}  // namespace lockstep::cli
