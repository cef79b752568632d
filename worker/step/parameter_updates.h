// The update of all parameters, group by group: where they stand in the state, and the tables that StepMath goes by. A
// step and the probe of a replica (rule 31) share it, so that what is probed is what steps do.
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

// Of a parameter and what its update touches, indices into the state.
struct ParameterIndex {
  int value = -1;
  std::vector<int> slots;
  int average = -1;   // -1: none is kept
  int exponent = -1;  // -1: sums are native
  bool decays = true;
  int group = -1;  // of the rule's groups; -1: none
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
  // For the parameters of `indices`, with the gradients of the same places. `math` and `state` outlive this.
  // ResourceExhausted names the size of a table.
  static absl::StatusOr<ParameterUpdates> Make(const UpdateRule& rule, device::StepMath& math, ReplicaState& state,
                                               absl::Span<const ParameterIndex> indices,
                                               absl::Span<const GradientSum> gradients);

  // Queues the update at `place`. `clip`: on the device, stands in for that of `norm`, as of StepMath::Update.
  // REQUIRES: the state is being written (ReplicaState::BeginWrite).
  absl::Status Queue(device::Stream& stream, const UpdatePlace& place, double denominator, double norm,
                     const float* clip) const;

 private:
  // Parameters that are updated with the same scalars.
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
