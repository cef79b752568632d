// What TensorBoard shows of a job whose chief was killed in the middle and went on.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/local_job.h"
#include "tests/e2e/shown_events.h"

namespace lockstep::e2e {
namespace {

std::map<std::string, std::string> FilesOf(const LocalJob& job) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat(job.directory(), "/events"))) {
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

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

  const auto files = FilesOf(job);
  CHECK(files.size() == 3);
  const Shown shown = ShowEvents(files);
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
  CHECK(shown.Last("samples_per_second") > 0);
  CHECK(shown.Last("worker/worker-0/step_ms") > 0);
  CHECK(shown.Last("gradient_norm") > 0);
  CHECK(shown.Last("cluster/chief_starts") == 2);
  CHECK(shown.Last("cluster/workers") == 1);
  CHECK(shown.texts.at("cluster/changes").rbegin()->first >= *shown.starts.rbegin());
}

TEST_CASE(
    "events: a chief that takes over running workers tells of them, of a worker that is killed, and no graph again",
    "[e2e]") {
  LocalJob job("events_adopted", "deploy/jobs/fashion_mnist.yaml",
               {"train.duration=1500steps", "checkpoint.every=100steps"});
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStatus("a save", [](const proto::StatusReply& status) { return status.published_step() > 0; });
  job.Kill("chief");
  job.StartChief(2);
  job.WaitForStatus("the generation of the chief before to go on", [](const proto::StatusReply& status) {
    return status.term() == 2 && status.phase() == "RUNNING" && status.generation().term() == 1;
  });
  job.Kill("worker-1");

  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  const Shown shown = ShowEvents(FilesOf(job));
  CHECK(shown.graphs == 1);
  CHECK(shown.metagraphs == 1);
  CHECK(shown.starts.size() == 2);
  CHECK(shown.curves.at("loss").rbegin()->first == 1500);
  const auto& workers = shown.curves.at("cluster/workers");
  CHECK(std::any_of(workers.begin(), workers.end(), [](const auto& point) { return point.second == 2; }));
  CHECK(workers.rbegin()->second == 1);
  CHECK(shown.Last("cluster/lost") == 1);
  CHECK(shown.Last("cluster/chief_starts") == 2);
  CHECK(absl::StrContains(AllOf(shown.texts.at("cluster/changes")), "- worker-1 lost: "));
}

}  // namespace
}  // namespace lockstep::e2e
