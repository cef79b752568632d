#include "chief/core/straggler_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::chief {

void StragglerWatch::NoteSpeed(const CoreContext& context, const Facts& facts, const Worker& worker,
                               const Report& report) {
  Stragglers::Counters counters;
  for (const NamedValue& value : report.stats) {
    if (value.name == "steps") counters.steps = value.value;
    if (value.name == "samples") counters.samples = value.value;
    if (value.name == "compute_seconds") counters.compute_seconds = value.value;
  }
  if (counters.steps == 0) return;
  for (const Stragglers::Change& change :
       marks_.Told(context.now, facts.current.id, facts.current.members.size(), worker.id(), counters)) {
    const Worker* other = context.roster.Find(change.worker);
    if (other == nullptr) continue;
    const std::string who = absl::StrCat(other->name(), " on ", other->host);
    const std::string much = absl::StrFormat("%.2f times the median of the members", change.slowdown);
    if (!change.straggles) {
      context.out.Say(Level::kInfo, absl::StrCat(who, " is no straggler any more: it computes for ", much));
      continue;
    }
    const bool alone = context.policy.replace_stragglers && SpareFor(context, facts, *other) == nullptr;
    context.out.Say(Level::kWarning,
                    absl::StrCat(who, " is a straggler: in a step it computes for ", much, ", which all wait for",
                                 alone ? ", and no spare worker can take its place" : ""));
  }
}

const Worker* StragglerWatch::SpareFor(const CoreContext& context, const Facts& facts, const Worker& straggler) const {
  // With room for one more a newcomer joins in any case.
  const GenerationLife::Current& current = facts.current;
  if (current.members.size() < Capacity(context.policy) || !current.Has(straggler.id())) return nullptr;
  for (const Worker* spare : context.roster.InOrder()) {
    if (!spare->IsReady() || !spare->AtRest() || spare->leaving || marks_.Straggles(spare->id())) continue;
    if (!facts.pairs.MayForm(spare->id(), context.now) || !facts.newcomers.MayAsk(*spare, context.now)) continue;
    // All of them: then the next team is the members and the spare, less the straggler.
    const bool reaches_all = std::all_of(current.members.begin(), current.members.end(), [&](const Member& member) {
      return facts.pairs.Reached(spare->id(), member.incarnation);
    });
    if (reaches_all) return spare;
  }
  return nullptr;
}

std::string StragglerWatch::SwapText(const CoreContext& context, const Facts& facts) {
  if (!context.policy.replace_stragglers) return "";
  for (const Member& member : facts.current.members) {
    const Worker* straggler = context.roster.Find(member.incarnation);
    if (straggler == nullptr || !marks_.Straggles(member.incarnation)) continue;
    const Worker* spare = SpareFor(context, facts, *straggler);
    if (spare == nullptr || !marks_.Try(straggler->id(), spare->id())) continue;
    const std::string text = absl::StrCat(spare->name(), " takes the place of ", member.name, ", a straggler");
    context.out.Say(Level::kInfo, text);
    return text;
  }
  return "";
}

}  // namespace lockstep::chief
