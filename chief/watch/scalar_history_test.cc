#include "chief/watch/scalar_history.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "chief/events/event_record.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

absl::Time AtMs(int64_t ms) { return absl::FromUnixMillis(ms); }

std::vector<int64_t> Steps(const ScalarSeries& series) {
  std::vector<int64_t> steps;
  for (const ScalarSeries::Stretch& stretch : series.Sample(0, 1 << 30, 1 << 20)) steps.push_back(stretch.last_step);
  return steps;
}

TEST_CASE("series: of many points each stretch has its mean and its bounds, and none is lost", "[watch]") {
  ScalarSeries series;
  const int64_t points = 5 * static_cast<int64_t>(ScalarSeries::kMostStretches) / 2;
  double sum = 0;
  for (int64_t step = 1; step <= points; ++step) {
    const double value = step == points / 2 ? 1000 : step % 10;
    sum += value;
    series.Add(step, step * 10, value);
  }
  CHECK(series.size() == points);
  const std::vector<ScalarSeries::Stretch> sample = series.Sample(1, points, 500);
  REQUIRE(sample.size() <= 500);
  REQUIRE(sample.size() > 200);
  double total = 0, high = 0;
  int64_t count = 0, next = 1;
  for (const ScalarSeries::Stretch& stretch : sample) {
    CHECK(stretch.first_step == next);
    next = stretch.last_step + 1;
    total += stretch.sum;
    count += stretch.count;
    high = std::max(high, stretch.high);
    CHECK(stretch.low <= stretch.mean());
    CHECK(stretch.mean() <= stretch.high);
    CHECK(stretch.at_ms == stretch.last_step * 10);
  }
  CHECK(next == points + 1);
  CHECK(count == points);
  CHECK(total == sum);
  CHECK(high == 1000);
}

TEST_CASE("series: a part of it has the points of that part alone", "[watch]") {
  ScalarSeries series;
  for (int64_t step = 1; step <= 100; ++step) series.Add(step, step, static_cast<double>(step));
  const std::vector<ScalarSeries::Stretch> sample = series.Sample(41, 50, 1000);
  REQUIRE(sample.size() == 10);
  CHECK(sample.front().first_step == 41);
  CHECK(sample.back().last_step == 50);
  CHECK(series.Sample(101, 200, 10).empty());
  CHECK(ScalarSeries().Sample(0, 10, 10).empty());
}

TEST_CASE("series: a value that is none stays none, and bounds are of the others", "[watch]") {
  ScalarSeries series;
  series.Add(1, 1, 2);
  series.Add(2, 2, std::numeric_limits<double>::quiet_NaN());
  series.Add(3, 3, 4);
  const std::vector<ScalarSeries::Stretch> sample = series.Sample(0, 10, 1);
  REQUIRE(sample.size() == 1);
  CHECK(std::isnan(sample[0].mean()));
  CHECK(sample[0].low == 2);
  CHECK(sample[0].high == 4);
}

TEST_CASE("scalars: what a chief told again after a kill counts once, and a torn end is read when it is whole",
          "[watch]") {
  MemoryStorage storage;
  ScalarHistory history;
  CHECK(absl::IsNotFound(history.ReadNew(storage)));
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  const auto path = [](const char* name) { return JoinPath(layout::kEvents, name); };
  std::string first = VersionRecord(AtMs(1000)) + StartRecord(AtMs(1000), 1);
  for (int64_t step = 1; step <= 5; ++step) {
    first += ScalarsRecord(AtMs(1000 + step), step, {{"loss", 10.0 - static_cast<double>(step)}, {"rate", 0.5}});
  }
  auto file = storage.CreateFile(path("events.out.tfevents.0000000001.a.1.1"), Access::kShared).value();
  REQUIRE(file->Append(first.substr(0, first.size() - 3)).ok());
  REQUIRE(history.ReadNew(storage).ok());
  CHECK(Steps(history.series().at("loss")) == std::vector<int64_t>{1, 2, 3, 4});
  REQUIRE(file->Append(first.substr(first.size() - 3)).ok());
  REQUIRE(history.ReadNew(storage).ok());
  CHECK(Steps(history.series().at("loss")) == std::vector<int64_t>{1, 2, 3, 4, 5});
  CHECK(history.series().at("loss").newest().at_ms == 1005);

  const std::string second = VersionRecord(AtMs(2000)) + StartRecord(AtMs(2000), 4) +
                             ScalarsRecord(AtMs(2001), 4, {{"loss", 1}}) +
                             TextRecord(AtMs(2001), 4, "cluster/changes", "- worker-0: joined");
  REQUIRE(WriteNewFile(storage, path("events.out.tfevents.0000000002.a.1.2"), second, Access::kShared).ok());
  REQUIRE(
      WriteNewFile(storage, path("events.out.tfevents.0000000000.metagraph.ab"), "no record", Access::kShared).ok());
  REQUIRE(history.ReadNew(storage).ok());
  REQUIRE(history.ReadNew(storage).ok());
  CHECK(Steps(history.series().at("loss")) == std::vector<int64_t>{1, 2, 3, 4});
  CHECK(history.series().at("loss").newest().mean() == 1);
  CHECK(Steps(history.series().at("rate")) == std::vector<int64_t>{1, 2, 3});
  CHECK(history.series().size() == 2);
}

TEST_CASE("scalars: a damaged record ends its file, and others are read", "[watch]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  std::string damaged = ScalarsRecord(AtMs(1), 1, {{"loss", 1}}) + ScalarsRecord(AtMs(2), 2, {{"loss", 2}});
  damaged[damaged.size() - 6] ^= 1;
  const auto write = [&](const char* name, const std::string& bytes) {
    REQUIRE(WriteNewFile(storage, JoinPath(layout::kEvents, name), bytes, Access::kShared).ok());
  };
  write("events.out.tfevents.1", damaged);
  write("events.out.tfevents.2", ScalarsRecord(AtMs(3), 3, {{"loss", 3}}));
  write("events.out.tfevents.3", std::string(40, '\xff'));
  ScalarHistory history;
  REQUIRE(history.ReadNew(storage).ok());
  CHECK(Steps(history.series().at("loss")) == std::vector<int64_t>{1, 3});
}

}  // namespace
}  // namespace lockstep::chief
