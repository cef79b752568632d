// Formats the message that a hook's command reads on its standard input: one JSON object (docs/hooks.md).
//
// Threading: thread-safe (pure function).
#ifndef LOCKSTEP_CHIEF_HOOKS_HOOK_MESSAGE_H_
#define LOCKSTEP_CHIEF_HOOKS_HOOK_MESSAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// The state of the job when a hook fires.
struct HookFacts {
  absl::Time now;  // wall clock
  std::string job;
  std::string directory;
  int64_t agreed_step = 0;
  std::optional<double> loss;   // of the newest agreed step
  int64_t evaluation_step = 0;  // 0: no evaluation yet
  std::vector<std::pair<std::string, double>> evaluation;
  std::string checkpoint;  // path of the newest checkpoint
  int64_t checkpoint_step = 0;
  std::optional<int> exit_code;  // set if the job ends
  std::string reason;            // of that end
};

// The message as one line with its newline. Numbers that are not finite become null.
std::string HookMessage(absl::string_view hook, absl::string_view event, int64_t step, const HookFacts& facts);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_HOOK_MESSAGE_H_
