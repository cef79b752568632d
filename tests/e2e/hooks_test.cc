// Hooks in real processes: what fires for which steps when a chief is killed, and that a job with hooks has the bits of
// one without.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"
#include "tests/e2e/shown_events.h"

namespace lockstep::e2e {
namespace {

constexpr char kFull[] = "deploy/jobs/fashion_mnist.yaml";

// The JSON objects that commands of hooks appended to a file, by hook and step.
std::map<std::string, std::vector<nlohmann::json>> Heard(const std::string& path) {
  std::map<std::string, std::vector<nlohmann::json>> heard;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    heard[absl::StrCat(json["hook"].get<std::string>(), " ", json["step"].get<int64_t>())].push_back(json);
  }
  return heard;
}

TEST_CASE("hooks: a chief killed in between fires for the same steps, stops at its step, and changes no bit", "[e2e]") {
  const std::string file = TempPath("heard");
  std::filesystem::remove(file);
  const std::string run = absl::StrCat("run: [/bin/sh, \"-c\", \"cat >> ", file, "\"]");
  const std::vector<std::string> settings = {"train.duration=400steps", "checkpoint.every=100steps",
                                             "eval.every=200steps"};
  std::vector<std::string> with_hooks = settings;
  with_hooks.push_back(absl::StrCat("hooks=[{name: tell, every: 60steps, ", run,
                                    "}, {name: stop, step: 350, stop: true}, {name: judge, on: evaluation, ", run,
                                    "}, {name: last, on: end, ", run,
                                    "}, {name: look, every: 100steps, statistics: \"*.bias\", histograms: \"*\"}]"));
  LocalJob plain("hooks_plain", kFull, settings);
  LocalJob job("hooks", kFull, with_hooks);

  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(70);
  job.Kill("chief");
  job.StartChief(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  CHECK(job.Stats().job().committed_step() == 350);
  CHECK_FALSE(job.Stats().job().completed());
  CHECK(job.Stats().job().ended() == "stopped by a hook, step 350 is published");
  auto heard = Heard(file);
  for (const char* key : {"tell 60", "tell 120", "tell 300", "judge 200"}) CHECK(heard.count(key) == 1);
  CHECK(heard["tell 300"].size() == 1);
  REQUIRE(heard["last 350"].size() == 1);
  CHECK(heard["last 350"][0]["exit_code"] == 0);
  CHECK(heard["last 350"][0]["checkpoint"]["step"] == 350);

  // Started again it goes on.
  job.RunUndisturbed(1);
  plain.RunUndisturbed(1);

  CHECK(job.Digest(400) == plain.Digest(400));
  heard = Heard(file);
  CHECK(heard["tell 300"].size() == 1);
  CHECK(heard["tell 360"].size() == 1);
  CHECK(heard["judge 400"].size() == 1);
  CHECK(heard["judge 400"][0]["evaluation"]["values"]["accuracy"].is_number());
  CHECK(heard["last 400"].size() == 1);
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(job.directory() + "/events")) {
    files[entry.path().filename()] = Read(entry.path());
  }
  const Shown shown = ShowEvents(files);
  int statistics = 0, histograms = 0;
  for (const auto& [tag, curve] : shown.curves) {
    if (absl::StartsWith(tag, "tensors/") && curve.count(400) == 1) {
      ++(absl::EndsWith(tag, ".bias/norm") ? statistics : histograms);
    }
  }
  CHECK(statistics > 0);
  CHECK(histograms > statistics);
}

TEST_CASE("hooks: a chief that is killed while commands of the end run leaves the stop to the next one", "[e2e]") {
  const std::string file = TempPath("at_end");
  std::filesystem::remove(file);
  const std::string stop = "{name: stop, step: 30, stop: true}";
  LocalJob job("hooks_end", kJob, {kInputs, kLabels, "train.duration=60steps"});
  job.Override(absl::StrCat("hooks=[", stop, ", {name: last, on: end, run: [/bin/sh, \"-c\", \"echo > ", file,
                            "; exec sleep 1000\"], timeout: 1000s}]"));
  job.StartChief(1);
  job.StartWorker(0);
  WaitUntil("the command of the end runs", [&] { return std::filesystem::exists(file); });
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.Status().has_value());
  job.Kill("chief");

  job.Override(absl::StrCat("hooks=[", stop, "]"));
  job.StartChief(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.Stats().job().committed_step() == 30);

  // Started again it goes on.
  job.RunUndisturbed(1);
  CHECK(job.Stats().job().committed_step() == 60);
}

TEST_CASE("hooks: a command that fails or takes too long is told of, and the job goes on", "[e2e]") {
  const std::string directory = TempPath("hooks_fail");
  const Result result =
      Run({"run", kJob, "--workers", "1", "--dir", directory},
          {kInputs, kLabels, "train.duration=30steps",
           "hooks=[{name: fails, step: 10, run: [/bin/sh, \"-c\", \"echo what went wrong; exit 3\"]}, {name: missing, "
           "step: 5, run: [/no/such/command]}, {name: hangs, on: end, run: [sleep, \"1000\"], timeout: 100ms}, {name: "
           "many, every: 5steps, run: [sleep, \"1000\"]}]"});

  CHECK(result.code == kExitDone);
  INFO(result.output);
  CHECK_THAT(result.output, Catch::Contains("hook fails of step 10: exit code 3"));
  CHECK_THAT(result.output, Catch::Contains("hook missing of step 5: cannot be started: /no/such/command"));
  CHECK_THAT(result.output, Catch::Contains("hook hangs of step 30: signal 15"));
  CHECK_THAT(result.output, Catch::Contains("hooks: 5 commands that waited when this chief ended were not run"));
  CHECK(Read(directory + "/logs/hooks/fails-step-10.txt") == "what went wrong\n");
}

}  // namespace
}  // namespace lockstep::e2e
