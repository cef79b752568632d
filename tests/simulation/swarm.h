// Draws a schedule from a seed: the job, its limits, and which faults strike when.
//
// Swarm testing (Groce et al., 2012): each seed draws a random subset of the kinds of faults and a rate for each, so
// that rare combinations are not drowned by frequent ones. All faults are drawn before the run, each with a seed of its
// own, so that one can be left out without changing the others.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_TESTS_SIMULATION_SWARM_H_
#define LOCKSTEP_TESTS_SIMULATION_SWARM_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/random.h"

namespace lockstep::simulation {

// A job with the default limits, and a cluster of one worker per host.
ClusterSettings DrawSettings(Random& random);

struct PlannedFault {
  absl::Duration at;
  FaultKind kind = FaultKind::kKillWorker;
  uint64_t seed = 0;  // for its remaining choices
};

struct Swarm {
  ClusterSettings settings;
  std::vector<FaultKind> kinds;  // kinds that may strike; empty: nothing fails
  std::vector<PlannedFault> faults;
  absl::Duration fault_phase;
};

Swarm DrawSwarm(uint64_t seed);
// The swarm of `seed` plus more kinds of faults, each drawn from a stream of its own; if none of these strikes, it
// equals DrawSwarm(seed).
Swarm DrawWideSwarm(uint64_t seed);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SWARM_H_
