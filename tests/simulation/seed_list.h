// Reads lists of seeds from files. Each line has the name of a profile, a seed, `real` if it needs the chief's
// JobStore, and behind a '#' the reason why it is kept.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_
#define LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/simulation/scenario.h"

namespace lockstep::simulation {

// The schedules in the file at `path`, in its order. NotFound: there is no such file. InvalidArgument: a line is
// malformed.
absl::StatusOr<std::vector<ScenarioOptions>> ReadSeeds(const std::string& path);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_
