// Hooks in real processes: what fires for which steps when a chief is killed, and that a job with hooks has the bits of
// one without.
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"

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
  const std::vector<std::string> settings = {"train.duration=900steps", "checkpoint.every=300steps",
                                             "eval.every=450steps"};
  std::vector<std::string> with_hooks = settings;
  with_hooks.push_back(absl::StrCat("hooks=[{name: tell, every: 200steps, ", run,
                                    "}, {name: stop, step: 700, stop: true}", ", {name: judge, on: evaluation, ", run,
                                    "}, {name: last, on: end, ", run, "}]"));
  LocalJob plain("hooks_plain", kFull, settings);
  LocalJob job("hooks", kFull, with_hooks);

  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(250);
  job.Kill("chief");
  job.StartChief(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});

  CHECK(job.Stats().job().committed_step() == 700);
  CHECK_FALSE(job.Stats().job().completed());
  CHECK(job.Stats().job().ended() == "stopped by a hook, step 700 is published");
  auto heard = Heard(file);
  for (const char* key : {"tell 200", "tell 400", "tell 600", "judge 450"}) CHECK(heard.count(key) == 1);
  CHECK(heard["tell 600"].size() == 1);
  REQUIRE(heard["last 700"].size() == 1);
  CHECK(heard["last 700"][0]["exit_code"] == 0);
  CHECK(heard["last 700"][0]["checkpoint"]["step"] == 700);

  // Started again it goes on.
  job.RunUndisturbed(1);
  plain.RunUndisturbed(1);

  CHECK(job.Digest(900) == plain.Digest(900));
  heard = Heard(file);
  CHECK(heard["tell 600"].size() == 1);
  CHECK(heard["tell 800"].size() == 1);
  CHECK(heard["judge 900"].size() == 1);
  CHECK(heard["judge 900"][0]["evaluation"]["values"]["accuracy"].is_number());
  CHECK(heard["last 900"].size() == 1);
}

TEST_CASE("hooks: a command that fails or takes too long is told of, and the job goes on", "[e2e]") {
  const std::string directory = TempPath("hooks_fail");
  const Result result =
      Run({"run", kJob, "--workers", "1", "--dir", directory},
          {kInputs, kLabels, "train.duration=30steps",
           "hooks=[{name: fails, step: 10, run: [/bin/sh, \"-c\", \"echo what went wrong; exit 3\"]}, {name: missing, "
           "step: 5, run: [/no/such/command]}, {name: hangs, on: end, run: [sleep, \"1000\"], timeout: 100ms}]"});

  CHECK(result.code == kExitDone);
  INFO(result.output);
  CHECK_THAT(result.output, Catch::Contains("hook fails of step 10: exit code 3"));
  CHECK_THAT(result.output, Catch::Contains("hook missing of step 5: cannot be started: /no/such/command"));
  CHECK_THAT(result.output, Catch::Contains("hook hangs of step 30: signal 15"));
  CHECK(Read(directory + "/logs/hooks/fails-step-10.txt") == "what went wrong\n");
}

}  // namespace
}  // namespace lockstep::e2e
