// Converts the replica of a simulated job (replica.h) to a state that the chief's storage accepts: the tensors of a
// small metagraph, whose bytes follow from the three integers and whose digest is computed as for any real state.
//
// Threading: thread-safe (pure functions; the metagraph is made once).
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_TINY_STATE_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_TINY_STATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chief/server/job_setup.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/digest/state_digest.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/replica.h"

namespace lockstep::simulation {

const std::vector<CheckpointTensor>& TinyLayout();

// The bytes of each tensor of the layout.
std::vector<std::string> BytesOf(const ReplicaState& state);
// The inverse of BytesOf; nullopt: these are the bytes of no replica.
std::optional<ReplicaState> StateOf(uint64_t step, const std::vector<std::string>& tensors);

StateDigests DigestsOf(const ReplicaState& state);

// The job of `settings` as its chief would read it from a job file. It begins with InitialState(settings.job).
chief::JobSetup SetUpTinyJob(const ClusterSettings& settings);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_TINY_STATE_H_
