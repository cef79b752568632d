#include "deploy/cli/check_hooks.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/job/extent.h"

namespace lockstep::cli {
namespace {

std::string EventText(job::Hook::On on) {
  switch (on) {
    case job::Hook::ON_NAN:
      return "at each step that is not finite";
    case job::Hook::ON_EVALUATION:
      return "after each evaluation";
    case job::Hook::ON_CHECKPOINT:
      return "after each checkpoint";
    default:
      return "when the job ends";
  }
}

// In steps, where they are known: 1ep and 60000samples are.
std::string WhenText(const job::Hook& hook, const JobSpec& spec, int64_t epoch_samples) {
  if (hook.has_step()) return absl::StrCat("at step ", hook.step());
  if (!hook.has_every()) return EventText(hook.on());
  const std::optional<int64_t> steps = StepsOf(hook.every(), epoch_samples, spec.train().global_batch_size());
  const std::string text = absl::StrCat("every ", AmountText(hook.every()));
  return !steps.has_value() || hook.every().has_steps() ? text : absl::StrCat(text, " (", *steps, " steps)");
}

std::string WhatText(const job::Hook& hook) {
  std::vector<std::string> what;
  if (hook.run_size() > 0) what.push_back(absl::StrCat("runs ", absl::StrJoin(hook.run(), " ")));
  if (hook.statistics_size() > 0) what.push_back(absl::StrCat("statistics of ", absl::StrJoin(hook.statistics(), " ")));
  if (hook.histograms_size() > 0) what.push_back(absl::StrCat("histograms of ", absl::StrJoin(hook.histograms(), " ")));
  if (hook.has_profile()) what.push_back(absl::StrCat("profiles ", hook.profile(), " steps"));
  if (hook.stop()) what.emplace_back("stops the job");
  return absl::StrJoin(what, ", ");
}

bool Finds(const std::string& command) {
  if (absl::StrContains(command, '/')) return access(command.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    if (access(absl::StrCat(folder, "/", command).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace

void CheckHooks(const JobSpec& spec, int64_t epoch_samples, uint64_t end_step, Findings& findings) {
  for (const job::Hook& hook : spec.hooks()) {
    findings.Ok("hook", absl::StrCat(hook.name(), ", ", WhenText(hook, spec, epoch_samples), ": ", WhatText(hook)));
    if (hook.run_size() > 0 && !Finds(hook.run(0))) {
      findings.Warn("hook", absl::StrCat(hook.name(), ": the command ", hook.run(0),
                                         " is not on this machine; the chief's needs it"));
    }
    if (hook.has_step() && static_cast<uint64_t>(hook.step()) > end_step) {
      findings.Warn("hook", absl::StrCat(hook.name(), ": never fires, because the job ends at step ", end_step));
    }
  }
}

}  // namespace lockstep::cli
