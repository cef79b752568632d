// Makes the disk of a schedule that runs the chief's own JobStore.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_MAKE_REAL_DISK_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_MAKE_REAL_DISK_H_

#include <cstdint>
#include <memory>

#include "tests/simulation/disk.h"

namespace lockstep::simulation {

class Cluster;

// `cluster` is not owned. `seed` determines where the job is kept, and what fails beyond the faults of the schedule.
std::unique_ptr<Disk> MakeRealDisk(Cluster* cluster, uint64_t seed);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_MAKE_REAL_DISK_H_
