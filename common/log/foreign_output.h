// Captures what other code (libraries, the C library on abort, child processes) writes to this process's outputs while
// its log lines are JSON. Each captured line is handed over to be wrapped in a JSON object, so that the outputs contain
// nothing else.
//
// The outputs are redirected to a pipe, which a thread reads; the log writes to their original targets. When the
// process aborts, the content of the pipe is handed over first.
//
// Invariants
//   * A writer never waits for a reader of the output: the thread only hands lines to a queue.
//   * A line is cut at 64 KiB.
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LOG_FOREIGN_OUTPUT_H_
#define LOCKSTEP_COMMON_LOG_FOREIGN_OUTPUT_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

// Starts the capture; later calls do nothing. `take` gets lines without their ends, on a thread of its own. `written`
// must be async-signal-safe and tells whether all lines that `take` got have been written; an aborting process waits
// for that, for at most a second. When no descriptors are left, nothing is redirected.
void CaptureForeignOutput(std::function<void(absl::string_view line)> take, bool (*written)());

// A descriptor of the original target of `fd`, 1 or 2: `fd` itself as long as nothing is captured.
int OwnOutput(int fd);

// Waits, for at most `patience`, until everything written before has been handed over.
void DrainForeignOutput(absl::Duration patience);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LOG_FOREIGN_OUTPUT_H_
