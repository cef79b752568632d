// One command of a hook, from its start to its end: a process group of its own with a time limit, whose output is kept
// up to a limit.
//
//   1 runs ──exits──▶ 4 ended     what it leaves behind in its group is killed
//     └──limit, or Cancel──▶ 2 SIGTERM to the group ──kill_after──▶ 3 SIGKILL ──▶ 4
//
// Invariants
//   * The command has descriptors 0, 1 and 2 alone, no blocked or ignored signals, and not the job's token.
//   * It ends with this process, also when that is killed, and so does what it had started in its group.
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
  bool well = false;  // it ran, and its exit code is 0
  std::string how;    // "exit code 0", "signal 9 (Killed)", "cannot be started: ..."
  absl::Duration took;
  std::string output;  // both streams as they came
  size_t cut = 0;      // bytes of output that are not in it
};

// The command is ended when `cancelled`, which is asked every now and then, says so. REQUIRES: SIGPIPE is ignored, or
// blocked in this thread.
CommandEnd RunCommand(const Command& command, const std::function<bool()>& cancelled);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_COMMAND_H_
