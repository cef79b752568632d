#include "chief/core/newcomers.h"

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

void Newcomers::Lost(const CoreContext& context, const std::string& host, const std::string& name, uint64_t step) {
  const absl::Duration pause = joins_.Lost({host, name}, step, context.now);
  if (pause == absl::ZeroDuration()) return;
  context.out.Say(Level::kWarning,
                  absl::StrCat(name, " was lost ", joins_.Losses({host, name}), " times, each within ",
                               JoinBackoff::kSteps, " steps of its joining: for ", absl::FormatDuration(pause),
                               " no generation is ended for it; it may join one that is formed meanwhile"));
}

bool Newcomers::ShouldEndGeneration(const CoreContext& context, const GenerationLife::Current& current,
                                    const Reachability& pairs) {
  if (current.members.size() >= Capacity(context.policy)) return false;
  bool fits = false;
  bool more = false;  // are on their way
  for (const Worker* worker : context.roster.InOrder()) {
    if (!worker->AtRest() || worker->leaving || !pairs.MayForm(worker->id(), context.now)) continue;
    if (!worker->IsReady()) {
      more = true;
      continue;
    }
    const bool reaches_all = pairs.ReachesAll(worker->id(), current.ids);
    fits = fits || (reaches_all && MayAsk(*worker, context.now));
    more = more || !(reaches_all || pairs.KnowsAll(worker->id(), current.ids));
  }
  return joins_.IsTime(fits, more, context.now);
}

}  // namespace lockstep::chief
