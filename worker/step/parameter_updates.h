// The update of all parameters, group by group: their indices in the state, and StepMath's tables. Steps and the probe
// of a replica (rule 31) share it, so that the probe covers exactly the update of steps.
//
// Threading: owned by the engine thread.
#ifndef LOCKSTEP_WORKER_STEP_PARAMETER_UPDATES_H_
#define LOCKSTEP_WORKER_STEP_PARAMETER_UPDATES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "worker/arithmetic/optimizer.h"
#include "worker/device/device.h"
#include "worker/device/step_math.h"
#include "worker/step/replica_state.h"

namespace lockstep::worker {

// Indices into the state of a parameter and of the tensors of its update.
struct ParameterIndex {
  int value = -1;
  std::vector<int> slots;
  int average = -1;   // -1: the job keeps no averages
  int exponent = -1;  // -1: native sums
  bool decays = true;
  int group = -1;  // index into the rule's groups; -1: none
};

// REQUIRES: `names` are parameters of the state.
std::vector<ParameterIndex> IndexParameters(const UpdateRule& rule, const StateLayout& layout,
                                            absl::Span<const std::string> names);

// The reduced sum of a parameter's gradient, `size` elements on the device.
struct GradientSum {
  int64_t size = 0;
  const float* values = nullptr;
};

class ParameterUpdates {
 public:
  // `gradients` is parallel to `indices`. `math` and `state` outlive the result. ResourceExhausted names the size of a
  // table.
  static absl::StatusOr<ParameterUpdates> Make(const UpdateRule& rule, device::StepMath& math, ReplicaState& state,
                                               absl::Span<const ParameterIndex> indices,
                                               absl::Span<const GradientSum> gradients);

  // Queues the update at `place`, with the arguments of MakeUpdateScalars. `clip`: a factor in device memory that
  // replaces the one by `norm`; may be null (StepMath::Update). REQUIRES: between ReplicaState::BeginWrite and
  // EndWrite.
  absl::Status Queue(device::Stream& stream, const UpdatePlace& place, double denominator, double norm,
                     const float* clip) const;

 private:
  // Parameters with the same update scalars.
  struct Group {
    UpdateRule rule;
    std::unique_ptr<device::UpdateTable> table;
  };

  explicit ParameterUpdates(device::StepMath& math) : math_(&math) {}

  device::StepMath* math_;
  std::vector<Group> groups_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_PARAMETER_UPDATES_H_
