// Looks at the tensors of a state for the hooks of a job: statistics and histograms of their values, and which is not
// finite.
//
// Invariants
//   * What is found follows from the state's bytes alone.
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_HOOKS_STATE_FACTS_H_
#define LOCKSTEP_WORKER_HOOKS_STATE_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/graph/state_layout.h"
#include "common/job/job.h"
#include "protos/observation.pb.h"
#include "worker/hooks/hook_condition.h"

namespace lockstep::worker {

// A hook that looks at the state.
struct StateHook {
  std::string name;
  HookCondition when;
  std::vector<int> statistics;  // tensors of the layout
  std::vector<int> histograms;

  bool LooksAtTensors() const { return !statistics.empty() || !histograms.empty(); }
};

// Those of `job`, in its order, and every one that is told which tensor is not finite; `epoch_samples`: of the job's
// training set.
std::vector<StateHook> StateHooksOf(const JobSpec& job, const StateLayout& layout, int64_t epoch_samples);

inline constexpr int kHistogramBuckets = 30;

// Of one tensor, with a histogram or without.
TensorFacts FactsOf(absl::string_view name, absl::Span<const float> values, bool histogram);

bool IsFinite(absl::Span<const float> values);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_STATE_FACTS_H_
