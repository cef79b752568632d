// One schedule: a cluster and the faults that hit it, all from one seed.
//
// First faults come for a while. Then the world heals: what is paused wakes or dies, directions open, a core of hosts
// is kept alive and everybody else stays dead. The job must make progress all the time (progress_oracle.h), and finish
// with the state that an undisturbed run has.
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

// How a seed is read. Classic schedules draw their faults while they run, all kinds in fixed shares; a swarm has a
// subset of more kinds, drawn before; a wide swarm adds kinds to those that the swarm of its seed has.
enum class Profile : uint8_t { kClassic, kSwarm, kWide };
const char* NameOf(Profile profile);

// What keeps the job: the model of a disk, or the chief's own JobStore. kDrawn: the latter in one of sixteen wide
// schedules, as a stream of its own says.
enum class StoreKind : uint8_t { kDrawn, kModel, kReal };
const char* NameOf(StoreKind kind);

struct ScenarioOptions {
  uint64_t seed = 1;
  Profile profile = Profile::kWide;
  StoreKind store = StoreKind::kDrawn;
  std::ostream* trace = nullptr;         // gets one line per happening; may be null
  std::optional<std::set<size_t>> only;  // of a swarm's faults, by number; all without it
  uint64_t salt = 0;                     // other delays for the same faults
};

struct ScenarioResult {
  std::vector<std::string> violations;  // empty: every oracle is content
  uint64_t faults = 0;
  uint64_t events = 0;
  uint64_t steps_applied = 0;  // over all replicas
  uint64_t worker_lives = 0;
  uint64_t chief_lives = 0;
  uint64_t commits = 0;
  std::map<std::string, uint64_t> covered;  // messages, commands and other things worth reaching
  absl::Duration simulated;
  Coverage coverage;
  std::vector<std::string> planned;  // a swarm's faults, by number
  absl::Duration longest_wait;       // of an undisturbed clique for a step
  double wait_share = 0;             // of what was allowed
};

ScenarioResult RunScenario(const ScenarioOptions& options);

// The command line that replays it.
std::string ReplayCommand(const ScenarioOptions& options);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_
