#include "deploy/cli/metric_plot.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log/escape.h"
#include "deploy/cli/columns.h"
#include "deploy/cli/stats_chart.h"

namespace lockstep::cli {
namespace {

constexpr size_t kLeastWidth = 40;
constexpr size_t kLabelWidth = 10;  // of a value at the left, or the name of a worker
constexpr size_t kRangeWidth = 19;  // behind a worker's row
constexpr size_t kRows = 10;
constexpr size_t kMostWorkers = 64;
constexpr size_t kSteps = 8;  // of a block
constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void Add(const Curve& curve) {
    for (const std::optional<double>& value : curve) {
      if (!value.has_value() || !std::isfinite(*value)) continue;
      least = std::min(least, *value);
      most = std::max(most, *value);
    }
  }
  bool empty() const { return most < least; }
  // From 1 to `steps`; in the middle when there is one value alone. 0: there is no value.
  size_t HeightOf(const std::optional<double>& value, size_t steps) const {
    if (!value.has_value() || !std::isfinite(*value)) return 0;
    const double share = most > least ? (*value - least) / (most - least) : 0.5;
    return 1 + static_cast<size_t>(std::lround(share * static_cast<double>(steps - 1)));
  }
};

std::string PlotNumber(double value) {
  return std::abs(value) >= 1e6 ? absl::StrFormat("%.3g", value) : absl::StrFormat("%.4g", value);
}

std::string Cell(const std::string& text, size_t columns) {
  const std::string cut = CutToColumns(text, columns);
  return absl::StrCat(cut, std::string(columns - std::min(columns, ColumnsOf(cut)), ' '));
}

std::optional<double> ValueOf(const StatsColumn& column, Metric metric) {
  if (metric == Metric::kSamplesPerSecond) return column.samples_per_second;
  if (column.step_ms <= 0) return std::nullopt;
  if (metric == Metric::kStepMs) return column.step_ms;
  if (metric == Metric::kComputeMs) return column.compute_ms;
  return 100 * column.waiting;
}

const char* TitleOf(Metric metric) {
  switch (metric) {
    case Metric::kSamplesPerSecond:
      return "samples per second";
    case Metric::kStepMs:
      return "milliseconds from one step to the next";
    case Metric::kComputeMs:
      return "milliseconds of a step that are computed";
    case Metric::kWaiting:
      return "percent of a step that the others are waited for";
    case Metric::kLoss:
      break;
  }
  return "loss";
}

// A row for each worker, all on one scale.
std::string WorkerRows(const std::map<std::string, Curve>& workers, size_t width) {
  Range range;
  for (const auto& [name, curve] : workers) range.Add(curve);
  if (range.empty()) return "";
  std::string text = absl::StrCat("\nby worker, from ", PlotNumber(range.least), " to ", PlotNumber(range.most), ":\n");
  size_t shown = 0;
  for (const auto& [name, curve] : workers) {
    if (++shown > kMostWorkers) {
      absl::StrAppend(&text, "and ", workers.size() - kMostWorkers, " more; --worker NAME shows one\n");
      break;
    }
    std::string row = absl::StrCat(Cell(name, kLabelWidth), " ");
    for (const std::optional<double>& value : curve) row += kBlocks[range.HeightOf(value, kSteps)];
    Range own;
    own.Add(curve);
    absl::StrAppend(&row, "  ",
                    own.empty() ? "none" : absl::StrCat(PlotNumber(own.least), " to ", PlotNumber(own.most)));
    absl::StrAppend(&text, CutToColumns(row, width), "\n");
  }
  return text;
}

}  // namespace

std::optional<Metric> ParseMetric(absl::string_view name) {
  if (name == "samples_per_second") return Metric::kSamplesPerSecond;
  if (name == "step_ms") return Metric::kStepMs;
  if (name == "compute_ms") return Metric::kComputeMs;
  if (name == "waiting") return Metric::kWaiting;
  if (name == "loss") return Metric::kLoss;
  return std::nullopt;
}

std::string Plot(const Curve& curve, size_t rows) {
  Range range;
  range.Add(curve);
  if (range.empty()) return "no values\n";
  std::string text;
  for (size_t row = rows; row-- > 0;) {
    const std::string label = row + 1 == rows ? PlotNumber(range.most) : row == 0 ? PlotNumber(range.least) : "";
    absl::StrAppendFormat(&text, "%*s ", static_cast<int>(kLabelWidth), label);
    std::string blocks;
    for (const std::optional<double>& value : curve) {
      const size_t height = range.HeightOf(value, rows * kSteps);
      blocks += kBlocks[std::clamp<size_t>(height, row * kSteps, (row + 1) * kSteps) - row * kSteps];
    }
    absl::StrAppend(&text, blocks, "\n");
  }
  return text;
}

size_t PlotColumns(size_t width) { return std::max(width, kLeastWidth) - kLabelWidth - 1; }

std::string MetricPlot(const std::vector<WorkerInterval>& history, Metric metric, size_t width, absl::TimeZone zone) {
  width = std::max(width, kLeastWidth);
  const size_t count = width - kLabelWidth - 1 - kRangeWidth;
  const absl::Time end = absl::FromUnixMillis(history.back().at_ms());
  absl::Time begin = end - absl::Seconds(1);
  std::map<std::string, std::vector<WorkerInterval>> by_worker;
  for (const WorkerInterval& line : history) {
    begin = std::min(begin, absl::FromUnixMillis(line.at_ms()) - absl::Seconds(line.seconds()));
    by_worker[EscapeControls(line.worker())].push_back(line);
  }
  const auto curve_of = [&](const std::vector<WorkerInterval>& lines) {
    Curve curve;
    for (const StatsColumn& column : Columns(lines, begin, end, count)) curve.push_back(ValueOf(column, metric));
    return curve;
  };
  const auto time = [&](absl::Time when) { return absl::FormatTime("%Y-%m-%d %H:%M:%S", when, zone); };
  std::string text = absl::StrCat(CutToColumns(TitleOf(metric), width), "\n", Plot(curve_of(history), kRows),
                                  CutToColumns(absl::StrCat(time(begin), " to ", time(end)), width), "\n");
  if (by_worker.size() < 2) return text;
  std::map<std::string, Curve> curves;
  for (const auto& [name, lines] : by_worker) curves[name] = curve_of(lines);
  return absl::StrCat(text, WorkerRows(curves, width));
}

std::string StepPlot(absl::string_view name, const std::vector<StepValue>& values, size_t width) {
  const size_t columns = PlotColumns(width);
  const int64_t first = values.front().step;
  const int64_t last = values.back().step;
  std::vector<std::pair<double, int64_t>> sums(columns);
  for (const StepValue& value : values) {
    const double share = last > first ? static_cast<double>(value.step - first) / static_cast<double>(last - first) : 0;
    auto& [sum, count] = sums[std::min(columns - 1, static_cast<size_t>(share * static_cast<double>(columns)))];
    sum += value.value;
    ++count;
  }
  Curve curve;
  for (const auto& [sum, count] : sums) {
    // Where steps are few, a column goes on with the value before it.
    if (count > 0) curve.push_back(sum / static_cast<double>(count));
    if (count == 0) curve.push_back(curve.empty() ? std::nullopt : curve.back());
  }
  return absl::StrCat(CutToColumns(name, width), "\n", Plot(curve, kRows), "step ", first, " to ", last, ", ",
                      PlotNumber(values.back().value), " in the end\n");
}

}  // namespace lockstep::cli
