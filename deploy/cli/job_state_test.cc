#include "deploy/cli/job_state.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
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

TEST_CASE("status: numbers that are NaN or infinite are null in JSON", "[cli]") {
  const double infinite = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  JobState state = Running();
  state.status.set_loss(none);
  state.status.set_best_value(-infinite);
  state.status.set_samples_per_second(infinite);
  state.status.set_eta_seconds(none);
  auto& metric = *state.status.add_evaluation();
  metric.set_name("perplexity");
  metric.set_value(infinite);

  const auto json = nlohmann::json::parse(JobStateJson(state, false));

  for (const char* name : {"loss", "best_value", "samples_per_second", "eta_seconds"}) {
    CAPTURE(name);
    CHECK(json[name].is_null());
  }
  CHECK(json["evaluation"][0]["name"] == "perplexity");
  CHECK(json["evaluation"][0]["value"].is_null());
  CHECK(json["metrics"][0]["value"].is_null());
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
        "STOPPED  step 50/200  25%\nsaved step 50\n3m ago: stop requested by SIGTERM; step 50 is published\n"
        "the command that started it goes on from step 50\n");
  const auto json = nlohmann::json::parse(JobStateJson(state, false));
  CHECK(json["phase"] == "STOPPED");
  CHECK(json["running"] == false);
  CHECK(json["exit_code"] == 75);

  state.status.set_phase("UNREACHABLE");
  CHECK_FALSE(HasEnded(state));
  CHECK_THAT(JobStateText(state, kNow), Contains("last heard of just now: ") && !Contains("goes on"));
  state.status.set_phase("DONE");
  CHECK_THAT(JobStateText(state, kNow), !Contains("goes on"));
}

TEST_CASE("status: a job that failed goes on once its cause is mended", "[cli]") {
  JobState state;
  state.status.set_phase("FAILED");
  state.status.set_step(40);
  state.status.set_end_step(200);
  state.status.set_published_step(40);
  state.exit_code = 65;
  state.reason = "the loss of step 43 is NaN; lower train.optimizer.lr";
  state.when = kNow;

  CHECK(HasEnded(state));
  CHECK(JobStateText(state, kNow + absl::Seconds(7)) ==
        "FAILED  step 40/200  20%\nsaved step 40\n7s ago: the loss of step 43 is NaN; lower train.optimizer.lr\n"
        "once the cause is mended, the same command goes on from step 40\n");
}

TEST_CASE("status: damaged statistics hide nothing else", "[cli]") {
  namespace fs = std::filesystem;
  const std::string folder = std::string(std::getenv("TEST_TMPDIR")) + "/damaged." + std::to_string(getpid());
  const std::string stats = folder + "/stats/worker_stats.json";
  fs::create_directories(folder + "/stats");
  std::ofstream(folder + "/LOCKSTEP") << "mark";
  std::ofstream(stats) << "{ \"job_id\": ";
  // Dated back: a chief of another machine would have written within the last seconds.
  fs::last_write_time(stats, fs::file_time_type::clock::now() - std::chrono::hours(1));

  const absl::StatusOr<JobState> state = ReadJobState(folder, absl::Seconds(1));

  REQUIRE(state.ok());
  CHECK(state->status.phase() == "NOT_RUNNING");
  CHECK_THAT(state->reason, Contains(stats) && Contains("statistics cannot be read"));
}

TEST_CASE("status: names in any script keep the columns of workers even", "[cli]") {
  JobState state = Running();
  state.status.mutable_workers(0)->set_name("r\u00e9gion-\u6a5f");
  state.status.mutable_workers(0)->set_state("member");
  CHECK_THAT(JobStateText(state, kNow), Contains("  r\u00e9gion-\u6a5f    member   rank 0"));
}

TEST_CASE("status: a host that is left out has a line of its own, with the cause", "[cli]") {
  JobState state = Running();
  state.status.mutable_workers(0)->set_state("straggler");
  auto& host = *state.status.add_workers();
  host.set_host("alpha");
  host.set_state("excluded");
  host.set_rank(-1);
  host.set_device("3 failures, the last one: worker-7 died of signal 11");

  const std::string text = JobStateText(state, kNow);

  CHECK_THAT(text, Contains("  host alpha is left out: 3 failures, the last one: worker-7 died of signal 11\n"));
  CHECK_THAT(text, Contains("straggler rank 0"));
}

TEST_CASE("status: ways back that happened are told, with who was named, also of a job that does not run", "[cli]") {
  JobState state = Running();
  auto& first = *state.status.add_repairs();
  first.set_at_ms(1767323045000);
  first.set_found_at(48);
  first.set_back_to(20);
  auto& second = *state.status.add_repairs();
  second = first;
  second.set_back_to(32);
  second.set_from_copy(true);
  second.add_workers("worker-1");
  second.add_hosts("b");
  state.answered = GENERATE(true, false);

  const std::string text = JobStateText(state, kNow);

  CHECK_THAT(text, Contains("repaired 2026-01-02T03:04:05Z: replicas differed at step 48, back to step 20, a "
                            "checkpoint; nobody could be named\n"));
  CHECK_THAT(text, Contains("back to step 32, kept in memory; worker-1 on b differed\n"));
  const auto json = nlohmann::json::parse(JobStateJson(state, true));
  REQUIRE(json["repairs"].size() == 2);
  CHECK(json["repairs"][1]["back_to"] == 32);
  CHECK(json["repairs"][1]["from_copy"] == true);
  CHECK(json["repairs"][1]["workers"][0] == "worker-1");
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
