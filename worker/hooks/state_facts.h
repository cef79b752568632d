// Inspects the tensors of a state for the hooks of a job: statistics and histograms of their values, and tensors with
// non-finite values.
//
// Invariants
//   * The result is a function of the state's bytes alone.
//
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

// A hook that inspects the state.
struct StateHook {
  std::string name;
  HookCondition when;
  std::vector<int> statistics;  // indices of tensors in the layout
  std::vector<int> histograms;  // likewise

  bool LooksAtTensors() const { return !statistics.empty() || !histograms.empty(); }
};

// The job's hooks that inspect tensors or are told which tensor is non-finite, in the job's order. `epoch_samples`: the
// size of the job's training set.
std::vector<StateHook> StateHooksOf(const JobSpec& job, const StateLayout& layout, int64_t epoch_samples);

inline constexpr int kHistogramBuckets = 30;

// The statistics of one tensor, optionally with a histogram.
TensorFacts FactsOf(absl::string_view name, absl::Span<const float> values, bool histogram);

bool IsFinite(absl::Span<const float> values);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_STATE_FACTS_H_
