// What TensorBoard shows of a job whose chief was killed in the middle and went on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/events/event_reading.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

// What a reader has when it has read every file, in the order of their names. A START drops what was seen of its step
// and later ones.
struct Shown {
  std::map<std::string, std::map<int64_t, float>> curves;  // by tag and step
  std::map<std::string, std::map<int64_t, std::string>> texts;
  std::set<int64_t> starts, checkpoints;
  int graphs = 0, metagraphs = 0, files = 0;
};

Shown Read(const std::string& directory) {
  std::map<std::string, std::vector<tensorboard::Event>> files;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat(directory, "/events"))) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = chief::ReadEvents(std::string(std::istreambuf_iterator<char>(in), {}));
  }
  Shown shown;
  for (const auto& [name, events] : files) {
    CAPTURE(name);
    ++shown.files;
    REQUIRE_FALSE(events.empty());
    CHECK(events[0].file_version() == "brain.Event:2");
    for (const auto& event : events) {
      shown.graphs += event.what_case() == tensorboard::Event::kGraphDef ? 1 : 0;
      shown.metagraphs += event.what_case() == tensorboard::Event::kMetaGraphDef ? 1 : 0;
      if (event.session_log().status() == tensorboard::SessionLog::START) {
        shown.starts.insert(event.step());
        for (auto& [tag, curve] : shown.curves) curve.erase(curve.lower_bound(event.step()), curve.end());
        for (auto& [tag, texts] : shown.texts) texts.erase(texts.lower_bound(event.step()), texts.end());
      }
      if (event.session_log().status() == tensorboard::SessionLog::CHECKPOINT) shown.checkpoints.insert(event.step());
      for (const auto& value : event.summary().value()) {
        CAPTURE(value.tag(), event.step());
        if (value.has_tensor()) {
          CHECK(shown.texts[value.tag()].emplace(event.step(), value.tensor().string_val(0)).second);
        } else {
          CHECK(shown.curves[value.tag()].emplace(event.step(), value.simple_value()).second);
        }
      }
    }
  }
  return shown;
}

float LastOf(const Shown& shown, const std::string& tag) { return shown.curves.at(tag).rbegin()->second; }

std::string AllOf(const std::map<int64_t, std::string>& texts) {
  std::string all;
  for (const auto& [step, text] : texts) all += text;
  return all;
}

TEST_CASE("events: after a kill TensorBoard shows every repeated step once, evaluations, checkpoints and one graph",
          "[e2e]") {
  LocalJob job("events", "deploy/jobs/fashion_mnist.yaml",
               {"train.duration=200steps", "checkpoint.every=50steps", "eval.every=100steps", "train.clip_norm=0.5"});
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStatus("a save in the middle", [](const proto::StatusReply& s) { return s.published_step() >= 100; });

  job.KillEverything();
  job.StartChief(1);
  job.StartWorker(0);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  const Shown shown = Read(job.directory());
  CHECK(shown.files == 3);
  CHECK(shown.graphs == 1);
  CHECK(shown.metagraphs == 1);
  REQUIRE(shown.starts.size() == 2);
  CHECK(*shown.starts.begin() == 1);
  for (const char* tag : {"loss", "learning_rate"}) {
    CAPTURE(tag);
    for (int64_t step = *shown.starts.rbegin(); step <= 200; ++step) CHECK(shown.curves.at(tag).count(step) == 1);
    CHECK(shown.curves.at(tag).rbegin()->first == 200);
  }
  CHECK(shown.curves.at("evaluation/accuracy").count(200) == 1);
  CHECK(shown.curves.at("evaluation/loss").count(200) == 1);
  CHECK(shown.checkpoints.count(200) == 1);
  CHECK(LastOf(shown, "samples_per_second") > 0);
  CHECK(LastOf(shown, "worker/worker-0/step_ms") > 0);
  CHECK(LastOf(shown, "gradient_norm") > 0);
  CHECK(LastOf(shown, "cluster/chief_starts") == 2);
  CHECK(LastOf(shown, "cluster/workers") == 1);
  CHECK(shown.texts.at("cluster/changes").rbegin()->first >= *shown.starts.rbegin());
}

TEST_CASE(
    "events: a chief that takes over running workers tells of them, of a worker that is killed, and no graph again",
    "[e2e]") {
  LocalJob job("events_adopted", "deploy/jobs/fashion_mnist.yaml",
               {"train.duration=1500steps", "checkpoint.every=500steps"});
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(100);
  job.Kill("chief");
  job.StartChief(2);
  job.WaitForStep(300);
  job.Kill("worker-1");

  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  const Shown shown = Read(job.directory());
  CHECK(shown.graphs == 1);
  CHECK(shown.metagraphs == 1);
  CHECK(shown.starts.size() == 2);
  CHECK(shown.curves.at("loss").rbegin()->first == 1500);
  const auto& workers = shown.curves.at("cluster/workers");
  CHECK(std::any_of(workers.begin(), workers.end(), [](const auto& point) { return point.second == 2; }));
  CHECK(workers.rbegin()->second == 1);
  CHECK(LastOf(shown, "cluster/lost") == 1);
  CHECK(LastOf(shown, "cluster/chief_starts") == 2);
  CHECK(absl::StrContains(AllOf(shown.texts.at("cluster/changes")), "- worker-1 lost: "));
}

}  // namespace
}  // namespace lockstep::e2e
