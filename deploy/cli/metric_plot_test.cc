#include "deploy/cli/metric_plot.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "deploy/cli/columns.h"

namespace lockstep::cli {
namespace {

using Catch::Contains;

TEST_CASE("metric plot: a curve stands between its least and its largest value, with gaps where there is none",
          "[cli]") {
  CHECK(Plot({0.0, 1.0, 2.0, std::nullopt, 3.0}, 2) ==
        "         3   ▃ █\n"
        "         0 ▁▆█ █\n");
  CHECK(Plot({5.0, 5.0}, 1) == "         5 ▅▅\n");
  CHECK(Plot({std::nullopt, std::nan("")}, 3) == "no values\n");
  CHECK_THAT(Plot({1.0, INFINITY, 2.0}, 1), Contains("▁ █"));
}

WorkerInterval Line(const std::string& worker, int64_t end_s, int64_t steps, double step_seconds) {
  WorkerInterval line;
  line.set_worker(worker);
  line.set_at_ms(end_s * 1000);
  line.set_seconds(60);
  line.set_steps(steps);
  line.set_samples(steps * 10);
  line.set_step_seconds(step_seconds);
  line.set_compute_seconds(step_seconds / 2);
  line.set_all_reduce_seconds(step_seconds / 4);
  return line;
}

TEST_CASE("metric plot: workers are compared on one scale", "[cli]") {
  const std::vector<WorkerInterval> history = {Line("a", 60, 600, 60), Line("b", 60, 600, 60), Line("a", 120, 600, 60),
                                               Line("b", 120, 150, 60)};

  const std::string text = MetricPlot(history, Metric::kComputeMs, 60, absl::UTCTimeZone());
  CHECK_THAT(text, Contains("milliseconds of a step that are computed"));
  CHECK_THAT(text, Contains("1970-01-01 00:00:00 to 1970-01-01 00:02:00"));
  CHECK_THAT(text, Contains("by worker, from 50 to 200:\n"));
  CHECK_THAT(text, Contains("50 to 50\n") && Contains("50 to 200\n"));
  for (const std::string& row : std::vector<std::string>(absl::StrSplit(text, '\n'))) CHECK(ColumnsOf(row) <= 60);
  CHECK_THAT(MetricPlot(history, Metric::kWaiting, 60, absl::UTCTimeZone()), Contains("        25 "));
  CHECK_THAT(MetricPlot({history[0]}, Metric::kStepMs, 60, absl::UTCTimeZone()), !Contains("by worker"));
}

TEST_CASE("metric plot: many workers do not flood the terminal", "[cli]") {
  std::vector<WorkerInterval> history;
  for (int i = 0; i < 200; ++i) history.push_back(Line(absl::StrCat("worker-", i), 60, 600, 60));
  const std::string text = MetricPlot(history, Metric::kSamplesPerSecond, 100, absl::UTCTimeZone());
  CHECK_THAT(text, Contains("and 136 more; --worker NAME shows one\n"));
}

TEST_CASE("metric plot: the loss is drawn by step, and few steps fill the width", "[cli]") {
  const std::string text = StepPlot("loss", {{1, 4.0}, {50, 2.0}, {101, 1.0}}, 61);
  CHECK_THAT(text, Catch::StartsWith("loss\n         4 ████"));
  CHECK_THAT(text, Contains("step 1 to 101, 1 in the end\n"));
  CHECK_THAT(StepPlot("loss", {{7, 3.0}}, 40), Contains("step 7 to 7, 3 in the end"));
}

TEST_CASE("metric plot: metrics have names", "[cli]") {
  CHECK(ParseMetric("step_ms") == Metric::kStepMs);
  CHECK(ParseMetric("loss") == Metric::kLoss);
  CHECK_FALSE(ParseMetric("los").has_value());
  CHECK_FALSE(ParseMetric("").has_value());
}

}  // namespace
}  // namespace lockstep::cli
