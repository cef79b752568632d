// One schedule: a cluster and the faults that hit it, all from one seed.
//
// Faults strike for a while. Then the world heals: paused processes wake or die, directions open, some hosts are kept
// alive and all others stay dead. The job must make progress all the time (progress_oracle.h) and end with the state of
// an undisturbed run.
//
// Threading: thread-compatible; runs of different seeds share nothing.
#ifndef LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_
#define LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/coverage.h"

namespace lockstep::simulation {

// How a seed is interpreted. Classic schedules draw their faults while they run, all kinds in fixed shares. A swarm has
// a subset of more kinds, drawn in advance. A wide swarm adds further kinds to the swarm of the same seed.
enum class Profile : uint8_t { kClassic, kSwarm, kWide };
const char* NameOf(Profile profile);

// The storage of the job: the model of a disk, or the chief's own JobStore. kDrawn: the latter in one of sixteen wide
// schedules, drawn from a stream of its own.
enum class StoreKind : uint8_t { kDrawn, kModel, kReal };
const char* NameOf(StoreKind kind);

struct ScenarioOptions {
  uint64_t seed = 1;
  Profile profile = Profile::kWide;
  StoreKind store = StoreKind::kDrawn;
  std::ostream* trace = nullptr;         // receives a line per event; may be null
  std::optional<std::set<size_t>> only;  // numbers of the swarm's faults to inject; nullopt: all
  uint64_t salt = 0;                     // other delays for the same faults
};

struct ScenarioResult {
  std::vector<std::string> violations;  // empty: the schedule passed
  uint64_t faults = 0;
  uint64_t events = 0;
  uint64_t steps_applied = 0;  // over all replicas
  uint64_t worker_lives = 0;
  uint64_t chief_lives = 0;
  uint64_t commits = 0;
  std::map<std::string, uint64_t> covered;  // occurrences of messages, commands and other events
  absl::Duration simulated;
  Coverage coverage;
  std::vector<std::string> planned;  // a swarm's faults, by number
  absl::Duration longest_wait;       // of an undisturbed clique, for a step
  double wait_share = 0;             // as a fraction of its limit
};

ScenarioResult RunScenario(const ScenarioOptions& options);

// The command line that replays this schedule.
std::string ReplayCommand(const ScenarioOptions& options);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_
