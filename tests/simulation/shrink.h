// Shrinks a failing schedule: leaves out faults, many at once and then one by one, while the rest still fails in the
// same way.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_SHRINK_H_
#define LOCKSTEP_TESTS_SIMULATION_SHRINK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/scenario.h"

namespace lockstep::simulation {

// A violation without its numbers, which differ between schedules with the same cause.
std::string KindOfViolation(const std::string& violation);

struct Shrunk {
  ScenarioOptions options;
  ScenarioResult result;
  uint64_t runs = 0;
};

using Runner = std::function<ScenarioResult(const ScenarioOptions&)>;

// The smallest schedule found within `most_runs` runs. Leaving a fault out shifts every later delay, so each attempt is
// made with several streams of delays (`salt`). A schedule that passes, or a classic one, is returned unchanged.
Shrunk Shrink(const ScenarioOptions& failing, uint64_t most_runs = 3000, const Runner& run = RunScenario);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SHRINK_H_
