// Makes a failing schedule small: leaves out faults, many at once and then one by one, while what is left still fails
// in the same way.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_SHRINK_H_
#define LOCKSTEP_TESTS_SIMULATION_SHRINK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "tests/simulation/scenario.h"

namespace lockstep::simulation {

// A violation without what differs between two schedules of one cause: numbers.
std::string KindOfViolation(const std::string& violation);

struct Shrunk {
  ScenarioOptions options;
  ScenarioResult result;
  uint64_t runs = 0;
};

using Runner = std::function<ScenarioResult(const ScenarioOptions&)>;

// The smallest schedule found within `most_runs`. Leaving a fault out moves every later delay, so each attempt is made
// with several streams of delays (`salt`). A schedule that passes, or a classic one, comes back as it is.
Shrunk Shrink(const ScenarioOptions& failing, uint64_t most_runs = 3000, const Runner& run = RunScenario);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SHRINK_H_
