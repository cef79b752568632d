// Lists of seeds in files: a line each, with a seed and after a '#' why it is kept.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_
#define LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::simulation {

// The seeds that `path` names, in its order. NotFound without such a file; InvalidArgument where a line holds something
// else than a seed.
absl::StatusOr<std::vector<uint64_t>> ReadSeeds(const std::string& path);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SEED_LIST_H_
