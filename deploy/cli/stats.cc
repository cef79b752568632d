// `lockstep stats`: what the workers of a job did over time, from its history.
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/stats/history_lines.h"
#include "chief/stats/line_files.h"
#include "chief/watch/scalar_history.h"
#include "common/job/units.h"
#include "common/job_place/job_place.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/metric_plot.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/stats_chart.h"

namespace lockstep::cli {
namespace {

constexpr size_t kWidthOfFiles = 100;

struct StatsQuestion {
  std::string directory;
  std::string worker;
  std::string last;
  std::string metric;
  bool json = false;
};

size_t Width() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1 : kWidthOfFiles;
}

// Leaves the lines that are asked for. NotFound when there is none.
absl::Status SelectLines(const StatsQuestion& question, std::vector<WorkerInterval>& history) {
  if (!question.worker.empty()) {
    std::erase_if(history, [&](const WorkerInterval& line) { return line.worker() != question.worker; });
    if (history.empty()) {
      return absl::NotFoundError(absl::StrCat("the history of ", question.directory, " has no worker '",
                                              question.worker, "'; without --worker it shows all of them"));
    }
  }
  if (!question.last.empty() && !history.empty()) {
    const absl::StatusOr<absl::Duration> last = job::ParseTime(question.last);
    if (!last.ok()) return absl::InvalidArgumentError(absl::StrCat("--last: ", last.status().message()));
    const int64_t from = history.back().at_ms() - absl::ToInt64Milliseconds(*last);
    std::erase_if(history, [&](const WorkerInterval& line) { return line.at_ms() <= from; });
  }
  if (history.empty()) {
    return absl::NotFoundError(absl::StrCat("the history of ", question.directory,
                                            " is empty yet: the chief adds to it every minute, and when it ends"));
  }
  return absl::OkStatus();
}

// The loss by step, from the job's events.
absl::Status ShowLoss(const StatsQuestion& question, const JobPlace& place) {
  if (!question.worker.empty() || !question.last.empty() || question.json) {
    return absl::InvalidArgumentError(
        "--metric loss is of the whole job: it goes with neither --worker, --last nor --json");
  }
  chief::ScalarHistory history;
  const absl::Status read = history.ReadNew(place.storage());
  if (!absl::IsNotFound(read)) LS_RETURN_IF_ERROR(read);
  const auto loss = history.series().find("loss");
  if (loss == history.series().end() || loss->second.empty()) {
    return absl::NotFoundError(absl::StrCat("the events of ", question.directory, " have no loss yet"));
  }
  std::vector<StepValue> values;
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  for (const auto& stretch : loss->second.Sample(0, kAll, PlotColumns(Width()))) {
    values.push_back({stretch.last_step, stretch.mean()});
  }
  std::cout << StepPlot("loss", values, Width());
  return absl::OkStatus();
}

absl::Status ShowStats(const StatsQuestion& question) {
  if (!question.metric.empty() && !ParseMetric(question.metric).has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--metric '", question.metric, "': samples_per_second, step_ms, compute_ms, waiting and loss can be drawn"));
  }
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(question.directory));
  if (ParseMetric(question.metric) == Metric::kLoss) return ShowLoss(question, *place);
  int damaged = 0;
  absl::StatusOr<std::vector<WorkerInterval>> history = chief::ReadHistory(place->storage(), damaged);
  if (absl::IsNotFound(history.status())) history = std::vector<WorkerInterval>();
  LS_RETURN_IF_ERROR(history.status());
  LS_RETURN_IF_ERROR(SelectLines(question, *history));
  const std::optional<Metric> metric = ParseMetric(question.metric);
  if (metric.has_value()) {
    std::cout << MetricPlot(*history, *metric, Width(), absl::LocalTimeZone());
  } else if (question.json) {
    for (const WorkerInterval& line : *history) std::cout << chief::JsonLine(line);
  } else {
    std::cout << StatsChart(*history, Width(), absl::LocalTimeZone());
  }
  if (damaged > 0) std::cerr << "lockstep: " << damaged << " lines of the history were cut off or damaged\n";
  return absl::OkStatus();
}

int StatsExitCode(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  return Fail(status, absl::IsInvalidArgument(status) ? kExitUsage : kExitBadData);
}

}  // namespace

void AddStats(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("stats", "What the workers of a job did over time, drawn from its history");
  auto question = std::make_shared<StatsQuestion>();
  AddPlace(*command, "directory", question->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command->add_option("--worker", question->worker, "Of this worker alone");
  command->add_option("--last", question->last, "Of this long before the newest line, as 2h; without it: all");
  command->add_option("--metric", question->metric,
                      "One curve in detail, with a row for each worker: samples_per_second, step_ms, compute_ms, "
                      "waiting or loss");
  command->add_flag("--json", question->json, "The lines themselves, for other programs");
  command->callback([question, &exit_code] { exit_code = StatsExitCode(ShowStats(*question)); });
}

}  // namespace lockstep::cli
