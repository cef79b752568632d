#include "chief/hooks/hook_desk.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/units.h"
#include "common/log/log.h"

namespace lockstep::chief {

bool StopsAtOnce(const job::Hook& hook) {
  if (!hook.stop()) return false;
  if (hook.has_every()) return hook.every().has_time();
  return hook.on() == job::Hook::ON_NAN || hook.on() == job::Hook::ON_CHECKPOINT;
}

HookDesk::HookDesk(Options options)
    : options_(std::move(options)),
      policy_(HookRulesOf(options_.job, options_.epoch_samples), options_.marks),
      commands_([this](const HookCommand& command, const CommandEnd& end) { CommandEnded(command, end); }) {}

void HookDesk::Fire(const std::vector<Firing>& firings) {
  for (const Firing& firing : firings) {
    const job::Hook& hook = options_.job.hooks(static_cast<int>(firing.hook));
    news_ = news_ || hook.run_size() > 0 || StopsAtOnce(hook);
    if (hook.run_size() > 0) Run(firing, hook);
    if (StopsAtOnce(hook) && stop_.empty()) stop_ = hook.name();
  }
  if (const int64_t more = policy_.left_out() - left_out_told_; more > 0) {
    left_out_told_ = policy_.left_out();
    LS_LOG(warn, "hooks: ", more, " steps were agreed at once for which a hook was due; only the newest ",
           HookPolicy::kMostAtOnce, " of each hook fire");
  }
}

void HookDesk::Run(const Firing& firing, const job::Hook& hook) {
  HookCommand command{hook.name(), firing.step, firing.event == HookEvent::kEnd, {}};
  command.command.words.assign(hook.run().begin(), hook.run().end());
  command.command.limit = job::ToDuration(hook.timeout());
  command.command.input = HookMessage(hook.name(), HookEventName(firing.event), firing.step, options_.facts());
  int64_t& dropped = dropped_[firing.hook];
  if (commands_.Start(std::move(command))) {
    if (dropped > 1) LS_LOG(warn, "hook ", hook.name(), ": ", dropped, " commands were left out in a row");
    dropped = 0;
  } else if (++dropped == 1) {
    LS_LOG(warn, "hook ", hook.name(), ": the command of step ", firing.step, " is left out, because ",
           CommandQueue::kMostWaiting, " others wait for the one that runs");
  }
}

void HookDesk::CommandEnded(const HookCommand& command, const CommandEnd& end) const {
  const std::string at = absl::StrCat(command.hook, "-step-", command.step);
  std::string kept;
  if (!end.output.empty()) {
    const std::string cut =
        end.cut == 0 ? "" : absl::StrCat("\n(", end.cut, " more bytes were written and are not kept)\n");
    const std::string where = options_.keep_output(at, absl::StrCat(end.output, cut));
    kept = where.empty() ? ", its output could not be kept" : absl::StrCat(", its output is in ", where);
  }
  const std::string line = absl::StrCat("hook ", command.hook, " of step ", command.step, ": ", end.how, " after ",
                                        absl::FormatDuration(absl::Trunc(end.took, absl::Milliseconds(1))), kept);
  if (end.well) {
    LS_LOG(info, line);
  } else {
    LS_LOG(warn, line);
  }
}

void HookDesk::TellDropped() const {
  if (const int dropped = commands_.dropped(); dropped > 0) {
    LS_LOG(warn, "hooks: ", dropped, " commands that waited when this chief ended were not run");
  }
}

void HookDesk::Ended(int64_t step) {
  Fire(policy_.Ended(step));
  commands_.Close();
}

}  // namespace lockstep::chief
