#include "deploy/cli/stats_chart.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_split.h"
#include "deploy/cli/columns.h"

namespace lockstep::cli {
namespace {

using Catch::Contains;

constexpr int64_t kStart = 1'700'000'000;

WorkerInterval ChartLine(const std::string& worker, int64_t end_s, double seconds, int64_t steps, double step_seconds) {
  WorkerInterval line;
  line.set_worker(worker);
  line.set_at_ms((kStart + end_s) * 1000);
  line.set_seconds(seconds);
  line.set_steps(steps);
  line.set_samples(steps * 10);
  line.set_step_seconds(step_seconds);
  line.set_all_reduce_seconds(step_seconds / 4);
  return line;
}

absl::Time At(int64_t seconds) { return absl::FromUnixSeconds(kStart + seconds); }

TEST_CASE("stats chart: a column has what was done in its time, and a line that reaches over several its share in each",
          "[cli]") {
  std::vector<WorkerInterval> history = {ChartLine("a", 60, 60, 600, 60), ChartLine("b", 60, 30, 300, 30),
                                         ChartLine("a", 120, 60, 300, 60)};
  history[1].set_preemptions(1);

  const std::vector<StatsColumn> columns = Columns(history, At(0), At(120), 4);

  REQUIRE(columns.size() == 4);
  CHECK(columns[0].samples_per_second == Approx(100));
  CHECK(columns[1].samples_per_second == Approx(200));
  CHECK(columns[2].samples_per_second == Approx(50));
  CHECK(columns[3].samples_per_second == Approx(50));
  CHECK(columns[1].step_ms == Approx(100));
  CHECK(columns[3].step_ms == Approx(200));
  CHECK(columns[3].waiting == Approx(0.25));
  CHECK(columns[1].preemptions == 1);
  CHECK(columns[0].preemptions == 0);
}

TEST_CASE("stats chart: rows of one width, gaps where nobody stepped, and a line for each of several workers",
          "[cli]") {
  std::vector<WorkerInterval> history = {ChartLine("worker-0", 60, 60, 600, 60), ChartLine("worker-1", 60, 60, 600, 60),
                                         ChartLine("worker-0", 300, 60, 300, 60)};
  history[2].set_losses(2);
  for (const size_t width : {1, 40, 80, 200}) {
    CAPTURE(width);
    const std::string text = StatsChart(history, width, absl::UTCTimeZone());
    for (const absl::string_view row : absl::StrSplit(text, '\n')) CHECK(ColumnsOf(row) <= std::max<size_t>(width, 70));
    CHECK_THAT(text, Contains("2023-11-14 22:13:20 to 2023-11-14 22:18:20") && Contains("2 lost (k)"));
    CHECK_THAT(text, Contains("worker-1") && Contains("25%") && Contains("100 to 200"));
  }
  CHECK_THAT(StatsChart(history, 80, absl::UTCTimeZone()), Contains("▁         "));
  history.pop_back();
  history.pop_back();
  CHECK_THAT(StatsChart(history, 80, absl::UTCTimeZone()), !Contains("waiting  left"));
}

TEST_CASE("stats chart: names cannot write on the terminal, and a line without a length is drawn", "[cli]") {
  const std::string text =
      StatsChart({ChartLine("a\x1b[2J", 60, 0, 5, 1), ChartLine("b", 60, 0, 5, 1)}, 80, absl::UTCTimeZone());
  CHECK_THAT(text, !Contains("\x1b"));
}

}  // namespace
}  // namespace lockstep::cli
