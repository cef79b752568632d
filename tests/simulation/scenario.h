// One schedule: a cluster and the faults that hit it, all from one seed.
//
// First faults come for a while. Then the world heals: what is paused wakes or dies, directions open, a core of hosts
// is kept alive and everybody else stays dead. From then on the job must finish within a bound, with the state that an
// undisturbed run has.
//
// Threading: thread-compatible; runs of different seeds share nothing.
#ifndef LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_
#define LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_

#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::simulation {

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
};

// Runs the schedule of `seed`; `trace` (may be null) gets one line per happening.
ScenarioResult RunScenario(uint64_t seed, std::ostream* trace);

// The command line that replays a seed.
std::string ReplayCommand(uint64_t seed);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SCENARIO_H_
