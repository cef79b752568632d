#include "chief/timeline/timeline_recorder.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/checkpoint_format/proto_json.h"

namespace lockstep::chief {
namespace {

const absl::Time kWall = absl::FromUnixMillis(1'700'000'000'123);

std::vector<TimelineEntry> EntriesOf(TimelineRecorder& recorder) {
  std::vector<TimelineEntry> entries;
  for (const absl::string_view line : absl::StrSplit(recorder.Take(), '\n', absl::SkipEmpty())) {
    REQUIRE(FromJson(line, "timeline", &entries.emplace_back()).ok());
  }
  return entries;
}

std::string Kinds(const std::vector<TimelineEntry>& entries) {
  std::string kinds;
  for (const TimelineEntry& entry : entries) absl::StrAppend(&kinds, kinds.empty() ? "" : " ", entry.kind());
  return kinds;
}

TimelineRecorder::Present Present(Phase phase, uint64_t counter, uint64_t step) {
  return {phase, {3, counter}, step, [] { return std::vector<std::string>{"worker-1", "worker-0"}; }};
}

TEST_CASE("timeline: a generation is told once, with its members, and a phase when it changes", "[timeline]") {
  TimelineRecorder recorder(3);
  recorder.ChiefStarted(kWall, 40, "checkpoint of step 40");
  recorder.Saw(kWall, {}, {Phase::kWaiting, {}, 40, nullptr});
  recorder.Saw(kWall, {}, {Phase::kWaiting, {}, 40, nullptr});
  recorder.Saw(kWall, {}, Present(Phase::kForming, 1, 40));
  recorder.Saw(kWall, {}, Present(Phase::kRunning, 1, 41));

  const std::vector<TimelineEntry> entries = EntriesOf(recorder);
  REQUIRE(Kinds(entries) == "chief_started phase generation phase phase");
  CHECK(entries[1].text() == "WAITING");
  CHECK(entries[2].generation() == "3.1");
  CHECK(entries[2].step() == 40);
  CHECK(entries[2].workers_size() == 2);
  CHECK(entries[2].workers(0) == "worker-1");
  CHECK(entries[4].at_ms() == 1'700'000'000'123);
  CHECK(entries[4].term() == 3);
  CHECK(recorder.Take().empty());
}

TEST_CASE("timeline: what becomes of workers and saves is told with its reason", "[timeline]") {
  TimelineRecorder recorder(3);
  recorder.Saw(kWall, {}, Present(Phase::kRunning, 1, 50));
  recorder.Take();
  recorder.Saw(kWall,
               {WorkerChanged{"worker-1", {}, WorkerChange::kLost, "its connection was reset"},
                OpenSave{{"a", 48, "d"}, 2, ""}, AbandonSave{{"a", 48, "d"}, "its members are gone"},
                Announce{Level::kInfo, "not told"}, Announce{Level::kError, "worker-2 failed: no data"}},
               Present(Phase::kRunning, 1, 50));
  recorder.Saved(kWall, 48, "checkpoints/step-000000048");

  const std::vector<TimelineEntry> entries = EntriesOf(recorder);
  REQUIRE(Kinds(entries) == "lost save_began save_failed error saved");
  CHECK(entries[0].worker() == "worker-1");
  CHECK(entries[0].text() == "its connection was reset");
  CHECK(entries[0].step() == 50);
  CHECK(entries[2].step() == 48);
  CHECK(entries[4].text() == "checkpoints/step-000000048");
}

TEST_CASE("timeline: a long text ends with a whole character", "[timeline]") {
  TimelineRecorder recorder(1);
  std::string text(TimelineRecorder::kLongestText - 1, 'x');
  for (int i = 0; i < 10; ++i) text += "é";
  recorder.Warned(kWall, text);
  const std::vector<TimelineEntry> entries = EntriesOf(recorder);
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].text() == text.substr(0, TimelineRecorder::kLongestText - 1) + "…");
}

TEST_CASE("timeline: a storage that takes nothing costs entries, not memory, and what is missing is said",
          "[timeline]") {
  TimelineRecorder recorder(1);
  const std::string text(5000, 'x');
  for (int i = 0; i < 20'000; ++i) recorder.Warned(kWall, text);
  const std::string lines = recorder.Take();
  CHECK(lines.size() < TimelineRecorder::kMostBytes + 8000);
  CHECK(lines.find("entries are missing here") != std::string::npos);
}

}  // namespace
}  // namespace lockstep::chief
