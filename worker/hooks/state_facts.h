// Looks at the tensors of a state for the hooks of a job: statistics and histograms of their values.
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

namespace lockstep::worker {

// A hook that looks at the state. Of its conditions one is set.
struct StateHook {
  std::string name;
  uint64_t step = 0;
  uint64_t every = 0;
  bool on_evaluation = false;
  std::vector<int> statistics;  // tensors of the layout
  std::vector<int> histograms;

  // Whether it looks at the state after `step`: at the step itself, or because it is about to be evaluated.
  bool Due(uint64_t at, bool evaluated) const {
    if (on_evaluation || evaluated) return on_evaluation && evaluated;
    return at == step || (every != 0 && at % every == 0);
  }
};

// Those of `job`, in its order; `epoch_samples`: of its training set.
std::vector<StateHook> StateHooksOf(const JobSpec& job, const StateLayout& layout, int64_t epoch_samples);

inline constexpr int kHistogramBuckets = 30;

// Of one tensor, with a histogram or without.
TensorFacts FactsOf(absl::string_view name, absl::Span<const float> values, bool histogram);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_STATE_FACTS_H_
