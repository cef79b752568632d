#include "chief/events/training_series.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr size_t kWorkers = 2;

TrainingSeries Series() { return TrainingSeries(32); }

std::map<std::string, double> ByTag(const Scalars& values) {
  std::map<std::string, double> by_tag;
  for (const auto& [tag, value] : values) CHECK(by_tag.emplace(tag, value).second);
  return by_tag;
}

TEST_CASE("series: every step has its loss first, and the learning rate of the update that made it", "[events]") {
  CHECK(TrainingSeries::OfStep({.step = 1, .loss = 2.5, .learning_rate = 0.125}) ==
        Scalars{{"loss", 2.5}, {"learning_rate", 0.125}});
}

TEST_CASE("series: a job that ends within an interval has a throughput too, though its last step was told",
          "[events]") {
  TrainingSeries series = Series();
  series.Take(kStart, 10, kWorkers, {}, false);
  JobStats saved;
  saved.set_checkpoints(1);
  CHECK(ByTag(series.Take(kStart + absl::Seconds(1), 110, kWorkers, saved, false).values).count("samples_per_second") ==
        0);

  const auto last = ByTag(series.Take(kStart + absl::Seconds(1), 110, kWorkers, saved, true).values);

  REQUIRE(last.size() == 1);
  CHECK(last.at("samples_per_second") == 3200);
  CHECK(series.Take(kStart + absl::Seconds(2), 110, kWorkers, saved, true).values.empty());
}

TEST_CASE("series: throughput and step times are means over an interval", "[events]") {
  TrainingSeries series = Series();
  CHECK(ByTag(series.Take(kStart, 10, kWorkers, {}, false).values).count("samples_per_second") == 0);
  series.Stepped("worker-0", 20, absl::Seconds(1));
  series.Stepped("worker-0", 20, absl::Seconds(3));
  series.Stepped("worker-1", 10, absl::Seconds(2));
  CHECK(series.Take(kStart + absl::Seconds(4), 40, kWorkers, {}, false).values.empty());

  const auto values = ByTag(series.Take(kStart + absl::Seconds(5), 50, kWorkers, {}, false).values);
  CHECK(values.at("samples_per_second") == 40 * 32 / 5);
  CHECK(values.at("worker/worker-0/step_ms") == 100);
  CHECK(values.at("worker/worker-1/step_ms") == 200);
  CHECK(values.at("cluster/workers") == 2);

  // Of the next interval alone; a worker that did nothing has no value.
  series.Stepped("worker-1", 1, absl::Seconds(1));
  const auto next = ByTag(series.Take(kStart + absl::Seconds(15), 51, kWorkers, {}, false).values);
  CHECK(next.at("samples_per_second") == Approx(3.2));
  CHECK(next.count("worker/worker-0/step_ms") == 0);
  CHECK(next.at("worker/worker-1/step_ms") == 1000);
}

TEST_CASE("series: an interval that is cut short at the end is told", "[events]") {
  TrainingSeries series = Series();
  series.Take(kStart, 10, kWorkers, {}, false);

  const auto values = ByTag(series.Take(kStart + absl::Seconds(2), 30, kWorkers, {}, true).values);

  CHECK(values.at("samples_per_second") == 20 * 32 / 2);
  CHECK(series.Take(kStart + absl::Seconds(2), 30, kWorkers, {}, true).values.empty());
}

TEST_CASE("series: what happens to workers is told at the next step, in counts and in words", "[events]") {
  TrainingSeries series = Series();
  JobStats totals;
  totals.set_joins(2);
  totals.set_chief_starts(1);
  series.Take(kStart, 10, kWorkers, totals, false);
  CHECK(series.Take(kStart + absl::Seconds(1), 11, kWorkers, totals, false).values.empty());

  totals.set_losses(1);
  totals.set_checkpoints(3);
  series.Changed("worker-1: reset");
  const auto told = series.Take(kStart + absl::Seconds(2), 12, 1, totals, false);

  const auto values = ByTag(told.values);
  CHECK(values.at("cluster/workers") == 1);
  CHECK(values.at("cluster/joined") == 2);
  CHECK(values.at("cluster/lost") == 1);
  CHECK(values.at("cluster/preempted") == 0);
  CHECK(values.at("cluster/crashed") == 0);
  CHECK(values.at("cluster/repairs") == 0);
  CHECK(values.at("cluster/checkpoints") == 3);
  CHECK(values.at("cluster/chief_starts") == 1);
  CHECK(values.count("samples_per_second") == 0);
  CHECK(told.changes == "- worker-1: reset\n");
  CHECK(series.Take(kStart + absl::Seconds(3), 13, 1, totals, false).changes.empty());
  series.Changed("worker-1: differed");  // which counts nowhere
  CHECK(series.Take(kStart + absl::Seconds(4), 14, 1, totals, false).changes == "- worker-1: differed\n");
}

TEST_CASE("series: no tag gets two values for a step, until it is trained again", "[events]") {
  TrainingSeries series = Series();
  CHECK_FALSE(series.Take(kStart, 10, 2, {}, false).values.empty());
  CHECK(series.Take(kStart + absl::Seconds(9), 10, 1, {}, false).values.empty());
  CHECK_FALSE(series.Take(kStart + absl::Seconds(9), 20, 1, {}, false).values.empty());

  // Back to step 5: nothing is compared with what was told of later steps.
  series.WentBack();
  const auto values = ByTag(series.Take(kStart + absl::Seconds(20), 6, 1, {}, false).values);
  CHECK(values.count("cluster/workers") == 1);
  CHECK(values.count("samples_per_second") == 0);
  CHECK_FALSE(series.Take(kStart + absl::Seconds(30), 10, 1, {}, false).values.empty());
}

TEST_CASE("series: training that comes back to the step that was told last tells it again", "[events]") {
  TrainingSeries series = Series();
  CHECK_FALSE(series.Take(kStart, 10, 2, {}, false).values.empty());
  series.WentBack();

  const auto values = ByTag(series.Take(kStart + absl::Seconds(1), 10, 2, {}, false).values);

  CHECK(values.at("cluster/workers") == 2);
  CHECK(values.count("samples_per_second") == 0);
}

TEST_CASE("series: training that goes back to a step after the one that was told last counts rates anew", "[events]") {
  TrainingSeries series = Series();
  series.Take(kStart, 10, 2, {}, false);
  series.GradientNormed(13, 0.5);
  CHECK(series.Take(kStart + absl::Seconds(4), 12, 2, {}, false).values.empty());
  series.WentBack();

  CHECK(ByTag(series.Take(kStart + absl::Seconds(6), 11, 2, {}, false).values).count("samples_per_second") == 0);

  const auto told = series.Take(kStart + absl::Seconds(11), 21, 2, {}, false);
  CHECK(ByTag(told.values).at("samples_per_second") == 10 * 32 / 5);
  CHECK_FALSE(told.gradient.has_value());  // 13 was made again
}

TEST_CASE("series: names and reasons break neither tags nor the list of changes", "[events]") {
  TrainingSeries series = Series();
  series.Take(kStart, 1, kWorkers, {}, false);
  series.Stepped("rack/7", 1, absl::Seconds(1));
  series.Stepped("rack_7", 1, absl::Seconds(3));
  series.Changed("rack/7 crashed: \n\n# Traceback\n" + std::string(32u << 20, 'x'));

  const auto told = series.Take(kStart + absl::Seconds(5), 2, kWorkers, {}, false);

  CHECK(ByTag(told.values).at("worker/rack_7/step_ms") == 2000);
  CHECK_THAT(told.changes, StartsWith("- rack/7 crashed:   \\# Traceback xxx") && EndsWith("x...\n"));
  CHECK(told.changes.size() < 600);
  CHECK(std::count(told.changes.begin(), told.changes.end(), '\n') == 1);
}

TEST_CASE("series: the gradient's norm is told of a step that is agreed, with the rates, once", "[events]") {
  TrainingSeries series = Series();
  series.Take(kStart, 10, kWorkers, {}, false);
  series.GradientNormed(21, 0.5);
  series.GradientNormed(22, 0.75);
  CHECK_FALSE(series.Take(kStart + absl::Seconds(5), 20, kWorkers, {}, false).gradient.has_value());
  CHECK_FALSE(series.Take(kStart + absl::Seconds(6), 30, kWorkers, {}, false).gradient.has_value());

  const auto told = series.Take(kStart + absl::Seconds(10), 40, kWorkers, {}, false).gradient;

  REQUIRE(told.has_value());
  CHECK(told->step == 21);
  CHECK(told->value == 0.5);
  series.GradientNormed(21, 0.5);  // another worker's report of the same step
  CHECK_FALSE(series.Take(kStart + absl::Seconds(15), 50, kWorkers, {}, false).gradient.has_value());

  // Of steps that were given up there is nothing to tell.
  series.GradientNormed(60, 0.25);
  series.WentBack();
  series.Take(kStart + absl::Seconds(20), 15, kWorkers, {}, false);
  CHECK_FALSE(series.Take(kStart + absl::Seconds(25), 70, kWorkers, {}, false).gradient.has_value());
  series.GradientNormed(16, 0.125);
  CHECK(series.Take(kStart + absl::Seconds(30), 80, kWorkers, {}, false).gradient->step == 16);
}

TEST_CASE("series: of many workers and changes the first are shown", "[events]") {
  TrainingSeries series = Series();
  series.Take(kStart, 1, kWorkers, {}, false);
  for (int i = 0; i < 1000; ++i) {
    series.Stepped(absl::StrCat("worker-", i), 1, absl::Seconds(1));
    series.Changed(absl::StrCat("worker-", i, ": joined"));
  }

  const auto told = series.Take(kStart + absl::Seconds(5), 2, kWorkers, {}, false);

  size_t workers = 0;
  for (const auto& [tag, value] : told.values) workers += absl::StartsWith(tag, "worker/") ? 1 : 0;
  CHECK(workers == TrainingSeries::kMostWorkers);
  CHECK_THAT(told.changes, Contains("worker-63: joined") && !Contains("worker-64: joined") && Contains("and 936 more"));
  series.Stepped("worker-999", 1, absl::Seconds(1));
  series.Stepped("worker-3", 1, absl::Seconds(1));
  const auto next = ByTag(series.Take(kStart + absl::Seconds(10), 3, kWorkers, {}, false).values);
  CHECK(next.count("worker/worker-3/step_ms") == 1);
  CHECK(next.count("worker/worker-999/step_ms") == 0);
}

}  // namespace
}  // namespace lockstep::chief
