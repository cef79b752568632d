#include "deploy/cli/stats_chart.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log/escape.h"
#include "deploy/cli/columns.h"

namespace lockstep::cli {
namespace {

constexpr size_t kLeastChartWidth = 40;
constexpr size_t kChartLabelWidth = 11;
constexpr size_t kChartRangeWidth = 20;
constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

absl::Time EndOf(const WorkerInterval& line) { return absl::FromUnixMillis(line.at_ms()); }
absl::Time BeginOf(const WorkerInterval& line) { return EndOf(line) - absl::Seconds(line.seconds()); }

// Sums of what was done.
struct Sums {
  double samples = 0;
  double steps = 0;
  double step_seconds = 0;
  double compute_seconds = 0;
  double all_reduce_seconds = 0;
  int64_t joins = 0;
  int64_t preemptions = 0;
  int64_t losses = 0;
  int64_t crashes = 0;

  // The part `share` of what `line` says was done in its time.
  void AddWork(const WorkerInterval& line, double share) {
    samples += share * static_cast<double>(line.samples());
    steps += share * static_cast<double>(line.steps());
    step_seconds += share * line.step_seconds();
    compute_seconds += share * line.compute_seconds();
    all_reduce_seconds += share * line.all_reduce_seconds();
  }
  void AddChanges(const WorkerInterval& line) {
    joins += line.joins();
    preemptions += line.preemptions();
    losses += line.losses();
    crashes += line.crashes();
  }
  double step_ms() const { return steps > 0 ? 1000 * step_seconds / steps : 0; }
  double compute_ms() const { return steps > 0 ? 1000 * compute_seconds / steps : 0; }
  double waiting() const { return step_seconds > 0 ? std::min(1.0, all_reduce_seconds / step_seconds) : 0; }
};

// Of what happened in a column the most serious.
const char* ChangeMark(const StatsColumn& column) {
  if (column.crashes > 0) return "x";
  if (column.losses > 0) return "k";
  if (column.preemptions > 0) return "p";
  return column.joins > 0 ? "+" : "·";
}

// A row of bars from `least` to `most` of the values, those of columns without any left out.
std::string Row(const std::string& label, const std::vector<double>& values, const std::vector<bool>& has,
                const std::function<std::string(double)>& text) {
  double least = 0, most = 0;
  bool any = false;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!has[i]) continue;
    least = any ? std::min(least, values[i]) : values[i];
    most = any ? std::max(most, values[i]) : values[i];
    any = true;
  }
  std::string row = absl::StrFormat("%-*s", static_cast<int>(kChartLabelWidth), label);
  for (size_t i = 0; i < values.size(); ++i) {
    const double height = most > least ? (values[i] - least) / (most - least) : 0.5;
    absl::StrAppend(&row, has[i] ? kBars[static_cast<size_t>(std::lround(height * 7))] : " ");
  }
  return absl::StrCat(row, "  ", any ? absl::StrCat(text(least), " to ", text(most)) : "none", "\n");
}

std::string ChartNumber(double value) {
  return absl::StrFormat(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value);
}
std::string Percent(double value) { return absl::StrFormat("%.0f%%", 100 * value); }

std::string DepartureText(const Sums& sums) {
  return absl::StrCat(sums.preemptions, " preempted, ", sums.losses, " lost, ", sums.crashes, " crashed");
}

// A line for each worker, by name.
std::string WorkerTable(const std::vector<WorkerInterval>& history, size_t width) {
  std::map<std::string, Sums> workers;
  std::map<std::string, absl::Duration> seen;
  size_t longest = 6;
  for (const WorkerInterval& line : history) {
    Sums& sums = workers[EscapeControls(line.worker())];
    sums.AddWork(line, 1);
    sums.AddChanges(line);
    seen[EscapeControls(line.worker())] += absl::Seconds(line.seconds());
    longest = std::max(longest, ColumnsOf(EscapeControls(line.worker())));
  }
  const auto padded = [&](const std::string& name) {
    return absl::StrCat(name, std::string(longest - std::min(longest, ColumnsOf(name)), ' '));
  };
  std::string table = absl::StrCat(padded("worker"), "  samples/s    step ms  waiting  left\n");
  for (const auto& [name, sums] : workers) {
    const double seconds = absl::ToDoubleSeconds(seen[name]);
    const std::string row = absl::StrFormat(
        "%s  %9s  %9s  %7s  %s", padded(name), ChartNumber(seconds > 0 ? sums.samples / seconds : 0),
        sums.steps > 0 ? ChartNumber(sums.step_ms()) : "-", Percent(sums.waiting()), DepartureText(sums));
    absl::StrAppend(&table, CutToColumns(row, width), "\n");
  }
  return table;
}

}  // namespace

std::vector<StatsColumn> Columns(const std::vector<WorkerInterval>& history, absl::Time begin, absl::Time end,
                                 size_t columns) {
  const absl::Duration each = (end - begin) / static_cast<int64_t>(columns);
  const auto index = [&](absl::Time time) {
    const double at = std::floor(absl::FDivDuration(std::max(absl::ZeroDuration(), time - begin), each));
    return std::min(columns - 1, static_cast<size_t>(at));
  };
  std::vector<Sums> sums(columns);
  for (const WorkerInterval& line : history) {
    const absl::Time from = BeginOf(line), to = EndOf(line);
    const size_t last = index(to - absl::Nanoseconds(1));
    for (size_t i = index(from); i <= last; ++i) {
      const absl::Time column_begin = begin + each * static_cast<int64_t>(i);
      const absl::Duration within = std::min(to, column_begin + each) - std::max(from, column_begin);
      sums[i].AddWork(line, to > from ? std::max(0.0, absl::FDivDuration(within, to - from)) : 1);
    }
    sums[last].AddChanges(line);
  }
  std::vector<StatsColumn> result;
  for (const Sums& column : sums) {
    result.push_back({.samples_per_second = column.samples / absl::ToDoubleSeconds(each),
                      .step_ms = column.step_ms(),
                      .compute_ms = column.compute_ms(),
                      .waiting = column.waiting(),
                      .joins = column.joins,
                      .preemptions = column.preemptions,
                      .losses = column.losses,
                      .crashes = column.crashes});
  }
  return result;
}

std::string StatsChart(const std::vector<WorkerInterval>& history, size_t width, absl::TimeZone zone) {
  width = std::max(width, kLeastChartWidth);
  absl::Time begin = BeginOf(history.front());
  const absl::Time end = EndOf(history.back());
  for (const WorkerInterval& line : history) begin = std::min(begin, BeginOf(line));
  if (begin >= end) begin = end - absl::Seconds(1);
  const size_t count = std::max<size_t>(8, width - kChartLabelWidth - kChartRangeWidth - 2);
  const std::vector<StatsColumn> columns = Columns(history, begin, end, count);

  std::vector<double> rate, step, waiting;
  std::vector<bool> has_step;
  const std::vector<bool> all(count, true);
  std::string changes = absl::StrFormat("%-*s", static_cast<int>(kChartLabelWidth), "workers");
  Sums sums;
  for (const StatsColumn& column : columns) {
    rate.push_back(column.samples_per_second);
    step.push_back(column.step_ms);
    waiting.push_back(column.waiting);
    has_step.push_back(column.step_ms > 0);
    absl::StrAppend(&changes, ChangeMark(column));
  }
  for (const WorkerInterval& line : history) sums.AddChanges(line);

  const auto time = [&](absl::Time when) { return absl::FormatTime("%Y-%m-%d %H:%M:%S", when, zone); };
  std::string text = absl::StrCat(
      time(begin), " to ", time(end), ", a column is ",
      absl::FormatDuration(absl::Trunc((end - begin) / static_cast<int64_t>(count), absl::Milliseconds(100))), "\n");
  absl::StrAppend(&text, Row("samples/s", rate, all, ChartNumber), Row("step ms", step, has_step, ChartNumber),
                  Row("waiting", waiting, has_step, Percent), changes, "\n");
  absl::StrAppend(&text, sums.joins, " joined (+), ", sums.preemptions, " preempted (p), ", sums.losses, " lost (k), ",
                  sums.crashes, " crashed (x)\n");
  const bool several = std::any_of(history.begin(), history.end(), [&](const WorkerInterval& line) {
    return line.worker() != history.front().worker();
  });
  if (several) absl::StrAppend(&text, "\n", WorkerTable(history, width));
  return text;
}

}  // namespace lockstep::cli
