// Lists of seeds in files: the name of a profile, a seed, `real` where it needs the chief's JobStore, and after a '#'
// why it is kept; a line each.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_
#define LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/scenario.h"

namespace lockstep::simulation {

// The schedules that `path` names, in its order. NotFound without such a file; InvalidArgument where a line holds
// something else.
absl::StatusOr<std::vector<ScenarioOptions>> ReadSeeds(const std::string& path);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_
