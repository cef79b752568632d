// What others write to this process's outputs (libraries, the C library when it aborts, child processes) while its own
// lines are JSON: each of their lines is handed over, so that it can be made an object, and programs read nothing else.
//
// The outputs lead into a pipe from then on, which a thread reads; the log writes to what they led to before. When the
// process aborts, what stands in the pipe is handed over first.
//
// Invariants
//   * Whoever writes waits for nobody: the thread hands lines to a queue.
//   * A line is cut at 64 KiB.
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LOG_FOREIGN_OUTPUT_H_
#define LOCKSTEP_COMMON_LOG_FOREIGN_OUTPUT_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

// Begins it, once; later calls do nothing. `take` gets lines without their ends, on a thread of its own. `written`,
// async-signal-safe: what `take` got is where it belongs; a process that aborts waits for it, for a second at most.
// Where there are no descriptors left everything stays as it is.
void CaptureForeignOutput(std::function<void(absl::string_view line)> take, bool (*written)());

// The descriptor of what `fd`, 1 or 2, led to when this process began: `fd` itself as long as nothing is captured.
int OwnOutput(int fd);

// Waits, for `patience` at most, until everything that was written before was handed over.
void DrainForeignOutput(absl::Duration patience);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LOG_FOREIGN_OUTPUT_H_
