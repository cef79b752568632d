// What TensorBoard shows of a job that was killed in the middle and went on.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/events/event_reading.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

using Curves = std::map<std::string, std::map<int64_t, float>>;  // by tag and step

// The curves of all files in the order of their starts; a START drops what was seen of its step and later ones.
Curves ReadCurves(const std::string& directory, std::set<int64_t>& starts, std::set<int64_t>& checkpoints) {
  std::map<double, std::vector<tensorboard::Event>> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    auto events = chief::ReadEvents(std::string(std::istreambuf_iterator<char>(in), {}));
    REQUIRE_FALSE(events.empty());
    const double when = events[0].wall_time();
    files[when] = std::move(events);
  }
  REQUIRE(files.size() == 2);
  Curves curves;
  for (const auto& [when, events] : files) {
    CHECK(events[0].file_version() == "brain.Event:2");
    for (const auto& event : events) {
      if (event.session_log().status() == tensorboard::SessionLog::START) {
        starts.insert(event.step());
        for (auto& [tag, curve] : curves) curve.erase(curve.lower_bound(event.step()), curve.end());
      }
      if (event.session_log().status() == tensorboard::SessionLog::CHECKPOINT) checkpoints.insert(event.step());
      for (const auto& value : event.summary().value()) {
        CHECK(curves[value.tag()].emplace(event.step(), value.simple_value()).second);
      }
    }
  }
  return curves;
}

TEST_CASE("events: after a kill TensorBoard shows every repeated step once, evaluations and checkpoints", "[e2e]") {
  LocalJob job("events", "deploy/jobs/fashion_mnist.yaml",
               {"train.duration=200steps", "checkpoint.every=50steps", "eval.every=100steps"});
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStatus("a save in the middle", [](const proto::StatusReply& s) { return s.published_step() >= 100; });

  job.KillEverything();
  job.StartChief(1);
  job.StartWorker(0);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  std::set<int64_t> starts, checkpoints;
  Curves curves = ReadCurves(absl::StrCat(job.directory(), "/events"), starts, checkpoints);
  REQUIRE(starts.size() == 2);
  CHECK(*starts.begin() == 1);
  for (int64_t step = *starts.rbegin(); step <= 200; ++step) CHECK(curves["loss"].count(step) == 1);
  CHECK(curves["loss"].rbegin()->first == 200);
  CHECK(curves["evaluation/accuracy"].count(200) == 1);
  CHECK(curves["evaluation/loss"].count(200) == 1);
  CHECK(checkpoints.count(200) == 1);
}

}  // namespace
}  // namespace lockstep::e2e
