#include "deploy/cli/job_state.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::cli {
namespace {

using Catch::Matchers::Contains;

const absl::Time kNow = absl::FromUnixSeconds(1'000'000);

JobState Running() {
  JobState state;
  state.answered = true;
  state.when = kNow;
  state.status.set_phase("RUNNING");
  state.status.set_step(50);
  state.status.set_end_step(200);
  state.status.set_loss(0.5);
  state.status.set_eta_seconds(90);
  auto& worker = *state.status.add_workers();
  worker.set_name("worker-0");
  worker.set_step(51);
  return state;
}

TEST_CASE("status: numbers are numbers in JSON", "[cli]") {
  const auto json = nlohmann::json::parse(JobStateJson(Running(), false));
  for (const char* name : {"step", "end_step", "published_step", "term", "failures", "failures_allowed", "preemptions",
                           "losses", "refused_callers", "evaluation_step", "best_step"}) {
    CAPTURE(name);
    CHECK(json[name].is_number());
  }
  CHECK(json["generation"]["counter"].is_number());
  CHECK(json["workers"][0]["step"] == 51);
  CHECK(json["workers"][0]["rank"].is_number());
  CHECK(json["progressPercentage"] == 25);
  CHECK(json["estimatedRemainingSeconds"] == 90);
  CHECK(json["running"] == true);
  CHECK(json["exit_code"].is_null());

  JobState endless = Running();
  endless.status.set_eta_seconds(std::numeric_limits<double>::infinity());
  const std::string line = JobStateJson(endless, true);
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(nlohmann::json::parse(line)["eta_seconds"].is_null());
}

TEST_CASE("status: a job that is not running says since when, why, and how it goes on", "[cli]") {
  JobState state;
  state.status.set_phase("STOPPED");
  state.status.set_step(50);
  state.status.set_end_step(200);
  state.status.set_published_step(50);
  state.exit_code = 75;
  state.reason = "stop requested by SIGTERM; step 50 is published";
  state.when = kNow;

  CHECK(HasEnded(state));
  CHECK(JobStateText(state, kNow + absl::Minutes(3)) ==
        "STOPPED  step 50/200  25%\nsaved step 50\nstop requested by SIGTERM; step 50 is published, 3m ago\n"
        "the command that started it goes on from step 50\n");
  const auto json = nlohmann::json::parse(JobStateJson(state, false));
  CHECK(json["phase"] == "STOPPED");
  CHECK(json["running"] == false);
  CHECK(json["exit_code"] == 75);

  state.status.set_phase("UNREACHABLE");
  CHECK_FALSE(HasEnded(state));
  state.status.set_phase("DONE");
  CHECK_THAT(JobStateText(state, kNow), !Contains("goes on"));
}

TEST_CASE("status: a worker cannot move the cursor with its name", "[cli]") {
  JobState state = Running();
  state.status.mutable_workers(0)->set_name("a\x1b[2J");
  CHECK_THAT(JobStateText(state, kNow), Contains("a\\x1b[2J"));
}

TEST_CASE("status: a folder that holds no job is named, and what is missing", "[cli]") {
  const std::string folder = std::string(std::getenv("TEST_TMPDIR")) + "/none." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const auto state = ReadJobState(folder, absl::Seconds(1));
  CHECK(absl::IsNotFound(state.status()));
  CHECK_THAT(std::string(state.status().message()), Contains(folder) && Contains("LOCKSTEP") && Contains("--dir"));
}

}  // namespace
}  // namespace lockstep::cli
