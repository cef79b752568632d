// What the processes of a job say, as programs and people read it: JSON from the first line of every process, and the
// chief's log after the chief is gone.
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/terminal.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
using nlohmann::json;

// Every line of an output is an object that says what every line says.
std::vector<json> Objects(const std::string& output) {
  std::vector<json> objects;
  for (const std::string& line : Lines(output)) {
    CAPTURE(line);
    objects.push_back(json::parse(line, nullptr, /*allow_exceptions=*/false));
    const json& object = objects.back();
    REQUIRE(object.is_object());
    for (const char* field : {"time", "level", "part", "message"}) REQUIRE(object.value(field, json()).is_string());
  }
  return objects;
}

TEST_CASE("log: with JSON every line of every process is an object, and says where the job stands", "[e2e]") {
  const std::string directory = TempPath("log.json");
  Words sets = Settings("60steps", "20steps");
  sets.push_back("observe.log.format=json");
  const Result run = Run({"run", kJob, "--workers", "2", "--dir", directory, "--kill-worker-every", "25steps"}, sets);
  REQUIRE(run.code == kExitDone);

  bool positioned = false;
  for (const json& object : Objects(run.output)) {
    const bool chief = object["part"] == "chief";
    CHECK((chief || object["part"] == "run"));
    positioned = positioned || (chief && object.contains("generation") && object.contains("step"));
  }
  CHECK(positioned);
  for (const char* name : {"worker-0", "worker-1"}) {
    CAPTURE(name);
    // From the first line on, which it writes before it knows the job.
    const std::vector<json> lines = Objects(Read(directory + "/logs/" + name + ".log"));
    REQUIRE(lines.size() > 1);
    bool in_generation = false;
    for (const json& object : lines) {
      CHECK(object["part"] == "worker");
      CHECK(object.value("worker", "") == name);
      in_generation = in_generation || object.contains("generation");
    }
    CHECK(in_generation);
  }

  const std::vector<json> kept = Objects(Run({"logs", directory, "--json"}).output);
  REQUIRE(kept.size() > 3);
  CHECK(kept.back().value("event", "") == "done");
  CHECK(kept.back().value("exit_code", -1) == 0);
  const std::vector<json> about = Objects(Run({"logs", directory, "--json", "--worker", "worker-1"}).output);
  REQUIRE_FALSE(about.empty());
  CHECK(about.size() < kept.size());
  for (const json& object : about) CHECK_THAT(object.dump(), Contains("worker-1"));
}

TEST_CASE("log: what a chief said is there after it was killed, and why a job failed is its last line", "[e2e]") {
  LocalJob killed("log_killed", kJob, Settings("100000steps"));
  killed.StartChief(1);
  killed.StartWorker(0);
  killed.WaitForStep(1);
  // It is written every two seconds: waited for until the line of the first generation is there.
  const absl::Time until = absl::Now() + kLimit;
  while (!absl::StrContains(Run({"logs", killed.directory()}).output, "steps from step 0")) {
    REQUIRE(absl::Now() < until);
  }
  killed.KillEverything();
  const Result after = Run({"logs", killed.directory()});
  CHECK(after.code == kExitDone);
  CHECK_THAT(after.output, Contains("listening on") && Contains("steps from step 0"));

  const std::string directory = TempPath("log.fails");
  Words sets = Settings();
  sets.push_back("train.optimizer.lr=1000000");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", directory}, sets).code == kExitBadData);
  for (const Words& words : {Words{"logs", directory}, Words{"logs", directory, "--follow"},
                             Words{"logs", directory, "--level", "error"}, Words{"logs", directory, "--last", "1"}}) {
    const Result shown = Run(words);
    CAPTURE(shown.output);
    CHECK(shown.code == kExitDone);
    CHECK_THAT(Lines(shown.output).back(), Contains("error: exit 65: ") && Contains("lower train.optimizer.lr"));
  }
  const Result none = Run({"logs", directory, "--level", "loud"});
  CHECK(none.code == kExitUsage);
  CHECK_THAT(none.output, Contains("info, warn and error"));
}

TEST_CASE("log: variables choose JSON before a job is read, and a wrong one is named", "[e2e]") {
  setenv("LOCKSTEP_LOG_FORMAT", "json", 1);
  for (const Words& words :
       {Words{"worker", "--chief", "127.0.0.1:1", "--token-file", TempPath("no.token"), "--connect-timeout", "1"},
        Words{"run", TempPath("no.yaml")}, Words{"chief", TempPath("no.yaml")}, Words{"worker", "--no-such-option"},
        Words{"logs", TempPath("no.job")}}) {
    CAPTURE(words);
    const Result result = Run(words);
    CHECK(result.code != kExitDone);
    const std::vector<json> lines = Objects(result.output);
    REQUIRE_FALSE(lines.empty());
    CHECK(lines.back()["level"] == "error");
    CHECK(lines.back().value("exit_code", -1) == result.code);
  }
  setenv("LOCKSTEP_LOG_FORMAT", "yaml", 1);
  const Result wrong = Run({"version"});
  unsetenv("LOCKSTEP_LOG_FORMAT");
  CHECK(wrong.code == kExitUsage);
  CHECK_THAT(wrong.output, Contains("LOCKSTEP_LOG_FORMAT is 'yaml'; it may be text or json"));
}

TEST_CASE("top: a running job and its workers are shown, on a terminal until q", "[e2e]") {
  LocalJob job("top", kJob, Settings("100000steps"));
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStatus("times of steps", [](const proto::StatusReply& status) {
    return status.workers_size() == 2 && status.workers(0).step_ms_p50() > 0 && status.workers(1).compute_ms() > 0;
  });

  const Result once = Run({"top", job.directory(), "--once"});
  CHECK(once.code == kExitDone);
  CHECK_THAT(once.output, Contains("RUNNING") && Contains("worker-0") && Contains("worker-1") && Contains("2 workers"));
  const Terminal terminal(80);
  Process top({kLockstep, "top", job.directory()}, terminal.ForChild(nullptr));
  std::string shown;
  const absl::Time until = absl::Now() + kLimit;
  while (!absl::StrContains(shown, "q quit") && absl::Now() < until) shown += terminal.Read();
  CHECK_THAT(shown, Contains("\x1b[?1049h") && Contains("worker-1"));
  terminal.Type("wq");
  while (top.Running() && absl::Now() < until) shown += terminal.Read();
  CHECK(top.Wait(kLimit) == Ended{});
  shown += terminal.Read();
  CHECK_THAT(shown, Contains("by waiting") && Contains("\x1b[?1049l"));
}

}  // namespace
}  // namespace lockstep::e2e
