#include "chief/stats/stats_history.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chief/stats/history_lines.h"
#include "chief/stats/line_files.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

const absl::Time kBegin = absl::FromUnixSeconds(1'000'000);
const absl::Time kWall = absl::FromUnixMillis(1'700'000'000'123);

WorkerStats& Add(WorkerStatsFile& totals, const std::string& name, int64_t steps, double step_seconds) {
  WorkerStats& worker = *totals.add_workers();
  worker.set_worker(name);
  worker.set_steps(steps);
  worker.set_samples(steps * 8);
  worker.set_step_seconds(step_seconds);
  worker.set_joins(1);
  return worker;
}

std::vector<WorkerInterval> ReadBack(MemoryStorage& storage, int& damaged) {
  damaged = 0;
  return ReadHistory(storage, damaged).value();
}

TEST_CASE("history: a line has what a worker did since the last one, and who did nothing has none", "[stats]") {
  WorkerStatsFile before;
  Add(before, "worker-0", 100, 5);
  Add(before, "worker-1", 100, 5);
  StatsHistory history;
  history.StartFrom(kBegin, before);
  CHECK_FALSE(history.Due(kBegin + absl::Seconds(59), 2));
  CHECK(history.Due(kBegin + absl::Seconds(60), 2));

  WorkerStatsFile now;
  now.mutable_job()->set_step(1300);
  Add(now, "worker-0", 1300, 65.1).set_preemptions(1);
  Add(now, "worker-1", 100, 5);
  Add(now, "worker-2", 10, 0.3);
  const std::string lines = history.Take(kBegin + absl::Seconds(60), kWall, now);

  CHECK(lines ==
        "{\"at_ms\":1700000000123,\"seconds\":60,\"worker\":\"worker-0\",\"job_step\":1300,\"steps\":1200,"
        "\"samples\":9600,\"step_seconds\":60.1,\"preemptions\":1}\n"
        "{\"at_ms\":1700000000123,\"seconds\":60,\"worker\":\"worker-2\",\"job_step\":1300,\"steps\":10,"
        "\"samples\":80,\"step_seconds\":0.3,\"joins\":1}\n");
  CHECK(history.Take(kBegin + absl::Seconds(120), kWall, now).empty());
}

TEST_CASE("history: of many workers an interval is longer, so that a minute has a thousand lines", "[stats]") {
  StatsHistory history;
  history.StartFrom(kBegin, WorkerStatsFile());
  CHECK_FALSE(history.Due(kBegin + absl::Minutes(10) - absl::Seconds(1), 10'000));
  CHECK(history.Due(kBegin + absl::Minutes(10), 10'000));
}

TEST_CASE("history files: what several chiefs appended reads as one history, without a line that was cut", "[stats]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(kHistoryFolder).ok());
  int damaged = 0;
  CHECK(absl::IsNotFound(ReadHistory(MemoryStorage(), damaged).status()));

  LineFiles first(storage, kHistoryFolder, 1, {}), second(storage, kHistoryFolder, 2, {});
  REQUIRE(first.Append("{\"at_ms\":1,\"worker\":\"a\"}\n").ok());
  REQUIRE(first.Append("{\"at_ms\":3,\"worker\":\"a\"}\n{\"at_ms\":4,\"wor").ok());
  REQUIRE(second.Append("{\"at_ms\":2,\"worker\":\"b\"}\n").ok());

  const std::vector<WorkerInterval> history = ReadBack(storage, damaged);
  REQUIRE(history.size() == 3);
  CHECK(history[1].worker() == "b");
  CHECK(history[2].at_ms() == 3);
  CHECK(damaged == 1);
}

TEST_CASE("history files: a chief that begins again in its term has other files, and the oldest go", "[stats]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(kHistoryFolder).ok());
  for (int i = 0; i < 7; ++i) {
    LineFiles files(storage, kHistoryFolder, 1, {.file_bytes = 10, .files = 3});
    REQUIRE(files.Append(absl::StrCat("{\"at_ms\":", i, "}\n")).ok());
  }
  int damaged = 0;
  const std::vector<WorkerInterval> history = ReadBack(storage, damaged);
  REQUIRE(history.size() == 3);
  CHECK(history.front().at_ms() == 4);

  LineFiles files(storage, kHistoryFolder, 2, {.file_bytes = 10, .files = 3});
  for (int i = 7; i < 10; ++i) REQUIRE(files.Append(absl::StrCat("{\"at_ms\":", i, "}\n")).ok());
  CHECK(ReadBack(storage, damaged).size() == 3);
  CHECK(ReadBack(storage, damaged).front().at_ms() == 7);
}

TEST_CASE("line files: a reader that comes again gets what is new, and a line only when it is whole", "[stats]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories("lines").ok());
  LineFiles first(storage, "lines", 1, {}), second(storage, "lines", 2, {});
  LineReader reader("lines");
  std::vector<std::string> lines;
  const auto take = [&](absl::string_view line) { return lines.emplace_back(line) != "no"; };

  REQUIRE(first.Append("a\nb\nhal").ok());
  REQUIRE(reader.ReadNew(storage, take).ok());
  CHECK(lines == std::vector<std::string>{"a", "b"});
  CHECK(reader.unfinished() == 1);

  REQUIRE(second.Append("c\n").ok());
  REQUIRE(first.Append("f\nno\n").ok());
  REQUIRE(reader.ReadNew(storage, take).ok());
  REQUIRE(reader.ReadNew(storage, take).ok());
  CHECK(lines == std::vector<std::string>{"a", "b", "half", "no", "c"});
  CHECK(reader.unfinished() == 0);
  CHECK(reader.damaged() == 1);
}

TEST_CASE("line files: a line longer than any is passed over", "[stats]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories("lines").ok());
  LineFiles files(storage, "lines", 1, {.file_bytes = 64 << 20});
  REQUIRE(files.Append(std::string(9 << 20, 'x')).ok());
  REQUIRE(files.Append("\nlast\n").ok());
  LineReader reader("lines");
  std::string last;
  REQUIRE(reader
              .ReadNew(storage,
                       [&](absl::string_view line) {
                         last = std::string(line);
                         return true;
                       })
              .ok());
  CHECK(last == "last");
  CHECK(reader.damaged() >= 1);
}

}  // namespace
}  // namespace lockstep::chief
