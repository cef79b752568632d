// The `profile` of a job's hooks in one worker: keeps where the time of the steps behind a hook's instant goes, one
// trace at a time.
//
//   1 idle ──Reached: a hook is due──▶ 2 tracing ──its last step ended, or Finish──▶ 1, with a trace
//
// Invariants
//   * While idle nothing is kept.
//   * A trace has the steps that were applied, and attempts between them that broke.
// Threading: owned by the thread that computes.
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

// Those of `job`, in its order; `epoch_samples`: of its training set.
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
  // Of one trace.
  static constexpr size_t kMostSpans = 100000;

  StepTracer() : StepTracer(Profiler::Options{.most_spans = kMostSpans}) {}
  explicit StepTracer(Profiler::Options options) : profiler_(std::move(options)) {}

  // REQUIRES: nothing is traced.
  void SetHooks(std::vector<TraceHook> hooks) { hooks_ = std::move(hooks); }

  // What watches the replica.
  Profiler* profiler() { return &profiler_; }

  // The replica came to these instants, between two steps. The name of a hook that is due and left out, because another
  // one's steps are being traced; "" when there is none.
  std::string Reached(absl::Span<const HookInstant> instants);
  // Something begins that stands in the trace as a whole: a step, or what is beside steps.
  void Begin() { begin_ns_ = hook_ == nullptr ? 0 : profiler_.now(); }
  // It ended. A trace that is whole with it.
  std::optional<StepTrace> EndStep(uint64_t step, bool applied);
  void EndOther(absl::string_view name);
  // The trace under way, where it has a step.
  std::optional<StepTrace> Finish();

 private:
  std::vector<TraceHook> hooks_;
  Profiler profiler_;
  const TraceHook* hook_ = nullptr;  // of the trace under way
  uint64_t at_ = 0;
  int64_t applied_ = 0;
  int64_t begin_ns_ = 0;
  std::vector<TracedStep> steps_;
};

// The trace as gzip of a Chrome trace, in pieces for the chief. `rank`: of the worker. Takes a while.
std::vector<TracePiece> PiecesOf(const StepTrace& trace, const std::string& job, const std::string& worker, int rank);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_HOOKS_STEP_TRACER_H_
