#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>

#include "tests/simulation/scenario.h"
#include "tests/simulation/seed_list.h"

namespace lockstep::simulation {
namespace {

TEST_CASE("simulation: whatever dies, the job ends with the state of an undisturbed run", "[simulation]") {
  constexpr uint64_t kSeeds = 2000;

  uint64_t faults = 0;
  std::map<std::string, uint64_t> covered;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const ScenarioOptions options{.seed = seed, .profile = Profile::kClassic};
    const ScenarioResult result = RunScenario(options);
    faults += result.faults;
    for (const auto& [what, count] : result.covered) covered[what] += count;
    INFO("replay: " << ReplayCommand(options));
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  }

  CHECK(faults > kSeeds);
  // The schedules reach what they are there for.
  for (const char* what : {"generation adopted",
                           "state restored",
                           "state sent by a peer",
                           "update finished while stopping",
                           "save abandoned",
                           "chief fenced by the storage",
                           "chief handed over",
                           "worker exits with 75",
                           "VerdictAck",
                           "AtBoundary",
                           "PeerFailed",
                           "Dismiss",
                           "TakeSnapshot",
                           "EvalReport",
                           "CommandRejected",
                           "Fenced",
                           "Done",
                           "job ended early",
                           "best state kept",
                           "the disk refuses",
                           "chief waits for the disk"}) {
    INFO(what);
    CHECK(covered[what] > 0);
  }
}

TEST_CASE("simulation: whatever happens to the chief's own storage, it keeps what it promised", "[simulation]") {
  constexpr uint64_t kSeeds = 250;

  std::map<std::string, uint64_t> covered;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const ScenarioOptions options{.seed = seed, .store = StoreKind::kReal};
    const ScenarioResult result = RunScenario(options);
    for (const auto& [what, count] : result.covered) covered[what] += count;
    INFO("replay: " << ReplayCommand(options));
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  }

  for (const char* what : {"a call stops halfway", "a machine went down with the directory",
                           "a request to the bucket is lost, late or comes twice", "the disk refuses",
                           "chief waits for the disk", "chief fenced by the storage", "save abandoned",
                           "went back to an audited state", "state restored", "best state kept"}) {
    INFO(what);
    CHECK(covered[what] > 0);
  }
}

TEST_CASE("simulation: schedules that failed before pass", "[simulation]") {
  const auto schedules = ReadSeeds("tests/simulation/regression_seeds.txt");

  REQUIRE(schedules.ok());
  CHECK(schedules->size() >= 4);
  for (const ScenarioOptions& options : *schedules) {
    const ScenarioResult result = RunScenario(options);
    INFO("replay: " << ReplayCommand(options));
    for (const std::string& violation : result.violations) FAIL_CHECK(violation);
  }
}

TEST_CASE("simulation: a seed replays exactly", "[simulation]") {
  for (const StoreKind store : {StoreKind::kModel, StoreKind::kReal}) {
    std::ostringstream first, second;

    RunScenario({.seed = 5, .store = store, .trace = &first});
    RunScenario({.seed = 5, .store = store, .trace = &second});

    CHECK(first.str() == second.str());
    CHECK(first.str().size() > 1000);
  }
}

}  // namespace
}  // namespace lockstep::simulation
