#include "worker/session/job_end.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::worker {
namespace {

namespace fs = std::filesystem;

// A job's directory with these statistics; its address file.
std::string DirectoryThatSays(const std::string& job) {
  const char* base = std::getenv("TEST_TMPDIR");
  const fs::path directory = fs::path(base == nullptr ? "." : base) / "job_end";
  fs::remove_all(directory);
  fs::create_directories(directory / "chief");
  fs::create_directories(directory / "stats");
  std::ofstream(directory / "stats" / "worker_stats.json") << job;
  return directory / "chief" / "address";
}

TEST_CASE("job end: a directory says that its job is done, and under which chief", "[session]") {
  const auto end = FindJobEnd(DirectoryThatSays(
      R"({"term": "7", "job": {"ended": "the job is done: step 50 is published", "completed": true}})"));

  REQUIRE(end.has_value());
  CHECK(end->term == 7);
  CHECK(end->reason == "the job is done: step 50 is published");
}

TEST_CASE("job end: a job that runs, was stopped, failed, or is not there is not done", "[session]") {
  CHECK_FALSE(FindJobEnd(DirectoryThatSays(R"({"term": "7", "job": {}})")).has_value());
  CHECK_FALSE(FindJobEnd(DirectoryThatSays(R"({"term": "7", "job": {"ended": "stop requested"}})")).has_value());
  CHECK_FALSE(
      FindJobEnd(DirectoryThatSays(R"({"job": {"ended": "x", "exit_code": 74, "completed": true}})")).has_value());
  CHECK_FALSE(FindJobEnd(DirectoryThatSays("no JSON")).has_value());
  CHECK_FALSE(FindJobEnd("").has_value());
  CHECK_FALSE(FindJobEnd("/nowhere/at/all").has_value());
  // A file elsewhere, as a supervisor gives it, belongs to no directory.
  const std::string address = DirectoryThatSays(R"({"job": {"ended": "x", "completed": true}})");
  CHECK(FindJobEnd(address).has_value());
  CHECK_FALSE(FindJobEnd(address + "-of-this-run").has_value());
}

}  // namespace
}  // namespace lockstep::worker
