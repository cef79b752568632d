// A profile in the Trace Event Format that chrome://tracing and Perfetto open: one track per kind of work, one for the
// steps, every run of a node an event with its op, shapes and kernel.
//
// Threading: thread-safe (pure functions of a profiler that is not recording).
#ifndef LOCKSTEP_WORKER_PROFILE_CHROME_TRACE_H_
#define LOCKSTEP_WORKER_PROFILE_CHROME_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/profile/profiler.h"

namespace lockstep::worker {

// What every trace written here begins with.
inline constexpr absl::string_view kTraceOpening = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";

// When one step, or what stands beside steps, ran, by the profiler's clock.
struct TracedStep {
  int64_t step = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::string name = {};  // empty: "step N"
};

// How many of `steps`, the first ones, the profiler has spans of; not all of the last one's where it left some out.
size_t StepsInTrace(const Profiler& profiler, absl::Span<const TracedStep> steps);

// The text of the file: these steps and all spans. Times count from the profiler's Start. A trace that was cut says so
// in an event at its end. `process`: its number and name in viewers, which show several traces as one.
std::string ChromeTrace(const Profiler& profiler, absl::string_view process, absl::Span<const TracedStep> steps,
                        int process_number = 1);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_CHROME_TRACE_H_
