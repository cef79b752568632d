// Implements the hook `profile` in one worker: profiles the steps that follow a hook's instant, one trace at a time.
//
//   1 idle ──Reached: a hook is due──▶ 2 tracing ──its last step ended, or Finish──▶ 1, with a trace
//
// Invariants
//   * Nothing is recorded while idle.
//   * A trace contains the applied steps and the attempts between them that broke.
//
// Threading: owned by the engine thread.
#ifndef LOCKSTEP_WORKER_HOOKS_STEP_TRACER_H_
#define LOCKSTEP_WORKER_HOOKS_STEP_TRACER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/job/job.h"
#include "protos/observation.pb.h"
#include "worker/hooks/hook_condition.h"
#include "worker/profile/chrome_trace.h"
#include "worker/profile/profiler.h"

namespace lockstep::worker {

struct TraceHook {
  std::string name;
  HookCondition when;
  int64_t steps = 0;
};

// The job's hooks that ask for a profile, in the job's order. `epoch_samples`: the size of its training set.
std::vector<TraceHook> TraceHooksOf(const JobSpec& job, int64_t epoch_samples);

struct StepTrace {
  std::string hook;
  uint64_t at = 0;  // the step at which the hook was due
  int64_t applied = 0;
  std::vector<TracedStep> steps;
  Profiler profiler;  // stopped
};

class StepTracer {
 public:
  // The most spans of one trace.
  static constexpr size_t kMostSpans = 100000;

  StepTracer() : StepTracer(Profiler::Options{.most_spans = kMostSpans}) {}
  explicit StepTracer(Profiler::Options options) : profiler_(std::move(options)) {}

  // REQUIRES: no trace is in progress.
  void SetHooks(std::vector<TraceHook> hooks) { hooks_ = std::move(hooks); }

  // The profiler to attach to the replica.
  Profiler* profiler() { return &profiler_; }

  // Call between two steps with the instants that the replica reached. Starts a trace if a hook is due. Returns the
  // name of a hook that is due but skipped because another trace is in progress; "" if none.
  std::string Reached(absl::Span<const HookInstant> instants);
  // Call when a step or other work that appears as one entry of the trace begins.
  void Begin() { begin_ns_ = hook_ == nullptr ? 0 : profiler_.now(); }
  // Call when it ends. EndStep returns the trace if this step completes it.
  std::optional<StepTrace> EndStep(uint64_t step, bool applied);
  void EndOther(absl::string_view name);
  // Ends the trace in progress and returns it if it has a step.
  std::optional<StepTrace> Finish();

 private:
  std::vector<TraceHook> hooks_;
  Profiler profiler_;
  const TraceHook* hook_ = nullptr;  // of the trace in progress; null: idle
  uint64_t at_ = 0;
  int64_t applied_ = 0;
  int64_t begin_ns_ = 0;
  std::vector<TracedStep> steps_;
};

// The trace as a gzipped Chrome trace, split into pieces for the chief. `rank`: the worker's. Slow for long traces.
std::vector<TracePiece> PiecesOf(const StepTrace& trace, const std::string& job, const std::string& worker, int rank);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_STEP_TRACER_H_
