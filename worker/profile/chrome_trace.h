// Exports a profile in the Trace Event Format of chrome://tracing and Perfetto: one track per kind of work and one for
// steps; every run of a node is an event with its op, shapes and kernel.
//
// Threading: thread-safe (pure functions of a stopped profiler).
#ifndef LOCKSTEP_WORKER_PROFILE_CHROME_TRACE_H_
#define LOCKSTEP_WORKER_PROFILE_CHROME_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/profile/profiler.h"

namespace lockstep::worker {

// The first bytes of every trace.
inline constexpr absl::string_view kTraceOpening = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";

// The time of one step, or of other work between steps, on the profiler's clock.
struct TracedStep {
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::string name = {};  // empty: "step N"
};

// The number of leading `steps` of which the profiler has spans; if it dropped spans, the last of them is incomplete.
size_t StepsInTrace(const Profiler& profiler, absl::Span<const TracedStep> steps);

// The text of the file, with these steps and all spans. Times count from the profiler's Start. If spans were dropped,
// an event at the end says so. `process` and `process_number` identify the process in viewers that merge several
// traces.
std::string ChromeTrace(const Profiler& profiler, absl::string_view process, absl::Span<const TracedStep> steps,
                        int process_number = 1);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_CHROME_TRACE_H_
