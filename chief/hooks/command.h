// Runs one command of a hook in a process group of its own, with a time limit; keeps its output up to a limit.
//
//   1 runs ──exits──▶ 4 ended     what it leaves behind in its group is killed
//     └──limit, or Cancel──▶ 2 SIGTERM to the group ──kill_after──▶ 3 SIGKILL ──▶ 4
//
// Invariants
//   * The command has descriptors 0, 1 and 2 alone, no blocked or ignored signals, and not the job's token.
//   * The command, and what it started in its group, ends with this process, even if this process is killed.
// Threading: thread-safe; RunCommand blocks.
#ifndef LOCKSTEP_CHIEF_HOOKS_COMMAND_H_
#define LOCKSTEP_CHIEF_HOOKS_COMMAND_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::chief {

struct Command {
  std::vector<std::string> words;
  std::string input;
  absl::Duration limit = absl::Seconds(60);
  absl::Duration kill_after = absl::Seconds(5);
  size_t most_output = size_t{1} << 20;
};

struct CommandEnd {
  bool well = false;  // it ran and exited with 0
  std::string how;    // "exit code 0", "signal 9 (Killed)", "cannot be started: ..."
  absl::Duration took;
  std::string output;  // both streams, interleaved as they came
  size_t cut = 0;      // bytes of output beyond the limit
};

// Runs the command and waits for its end. `cancelled` is called periodically; once it returns true, the command is
// terminated. REQUIRES: SIGPIPE is ignored, or blocked in this thread.
CommandEnd RunCommand(const Command& command, const std::function<bool()>& cancelled);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_COMMAND_H_
