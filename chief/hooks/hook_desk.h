// Runs the hooks of a job in its chief: decides with HookPolicy which fire, starts their commands, and reports which
// hook wants the job to stop.
//
// Threading: thread-compatible; owned by ChiefLoop. Never waits for a command.
#ifndef LOCKSTEP_CHIEF_HOOKS_HOOK_DESK_H_
#define LOCKSTEP_CHIEF_HOOKS_HOOK_DESK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/hooks/command_queue.h"
#include "chief/hooks/hook_message.h"
#include "chief/hooks/hook_policy.h"
#include "common/job/job.h"

namespace lockstep::chief {

class HookDesk {
 public:
  struct Options {
    JobSpec job;
    int64_t epoch_samples = 1;
    HookMarks marks;  // of the previous chief
    // Returns the present facts of the job; called when a command is started.
    std::function<HookFacts()> facts;
    // Stores the output of a command under a file name. Returns its path; "" if it could not be stored. Thread-safe.
    std::function<std::string(const std::string& name, const std::string& text)> keep_output;
  };
  explicit HookDesk(Options options);

  bool empty() const { return options_.job.hooks_size() == 0; }
  // Steps up to `step` are agreed.
  void Agreed(absl::Time now, int64_t step) { Fire(policy_.Agreed(now, step)); }
  void NotFinite(int64_t step) { Fire(policy_.NotFinite(step)); }
  void Evaluated(int64_t step) { Fire(policy_.Evaluated(step)); }
  void Published(int64_t step) { Fire(policy_.Published(step)); }
  // The job ends: only commands of `on: end` still fire, and those started before have a moment left.
  void Ended(int64_t step);
  // This chief ends but not the job: nothing fires any more, and running commands have a moment left.
  void Close() { commands_.Close(); }
  // Whether every command has ended.
  bool idle() const { return commands_.idle(); }
  // Logs how many commands were not run because the job ended. Call once idle() is true.
  void TellDropped() const;
  // Terminates running commands.
  void Cancel() { commands_.Cancel(); }

  // The hook that wants the job to stop soon; "" if none does. Hooks that stop it at an exact step are carried out by
  // the workers (TrainingPolicy::stops).
  std::string TakeStop() { return std::exchange(stop_, ""); }
  // Whether a hook fired since the last call, so that marks() should be stored soon.
  bool TakeNews() { return std::exchange(news_, false); }
  const HookMarks& marks() const { return policy_.marks(); }

 private:
  void Fire(const std::vector<Firing>& firings);
  void Run(const Firing& firing, const job::Hook& hook);
  void CommandEnded(const HookCommand& command, const CommandEnd& end) const;

  const Options options_;
  HookPolicy policy_;
  std::string stop_;
  bool news_ = false;
  int64_t left_out_told_ = 0;
  std::map<size_t, int64_t> dropped_;  // by hook: firings in a row whose command was dropped
  CommandQueue commands_;              // the last member, so that it is destroyed first
};

// Whether a hook with `stop` ends the job when it fires, not at a step that is known in advance.
bool StopsAtOnce(const job::Hook& hook);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_HOOK_DESK_H_
