#include "chief/core/waiting_step.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/beginning.h"
#include "chief/core/leavers.h"
#include "chief/core/states_at_rest.h"

namespace lockstep::chief {
namespace {

using Kind = WaitingStep::Kind;

WaitingStep Save(const Position& position, std::string reason) {
  return {Kind::kSave, {}, position, std::move(reason)};
}

bool SomebodyMayHoldNewer(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves) {
  for (const Worker* worker : context.roster.InOrder()) {
    const bool may_hold = MayHoldNewer(context, life, saves, *worker);
    if (may_hold) return true;
  }
  return false;
}

// Fewer than the minimum can step together.
WaitingStep Park(const CoreContext& context, Gathering& gathering, const CheckpointTracker& saves, Team team) {
  if (!gathering.Park(context)) return {};
  const Worker* best = BestAtRest(context.history, context.roster, /*leavers_too=*/true);
  if (best != nullptr && saves.IsNewer(best->held->position.step)) {
    return Save(best->held->position, "the minimum of workers did not come");
  }
  if (saves.Busy()) return {};
  return {Kind::kGiveUp, std::move(team), {}, ""};
}

}  // namespace

WaitingStep NextWaitingStep(const CoreContext& context, GenerationLife& life, Gathering& gathering,
                            const TeamChoice& teams, const CheckpointTracker& saves, const JobEnd& end) {
  const TrainingPolicy& training = context.policy.training;
  const Worker* best = BestAtRest(context.history, context.roster, /*leavers_too=*/true);
  const bool at_end = best != nullptr && best->held->position.step >= training.end_step &&
                      best->held->position >= RestoredPosition(training, training.end_step);
  if (at_end || end.pending().has_value()) {
    const bool completes = at_end && !saves.published_evaluated();
    if (best != nullptr && (completes || saves.IsNewer(best->held->position.step))) {
      return Save(best->held->position, at_end ? "the last step" : end.pending()->reason);
    }
    return {saves.Busy() ? Kind::kWait : Kind::kFinish, {}, {}, ""};
  }
  const Worker* staying_best = BestAtRest(context.history, context.roster, /*leavers_too=*/false);
  const bool leaver_holds_more = best != nullptr && best->leaving &&
                                 (staying_best == nullptr || staying_best->held->position < best->held->position);
  Team team = teams.Choose(leaver_holds_more);
  if (team.in_doubt) return {};
  if (life.backoff().Pauses(context.now) && !life.EndPauseFor(team.members, context.now)) return {};
  if (team.staying < context.policy.min_workers) return Park(context, gathering, saves, std::move(team));
  gathering.EndPark();
  if (team.saved_first.has_value()) {
    return Save(*team.saved_first, "its holder reaches fewer workers than there are without it");
  }
  // Newest live state first: the storage is read only when nobody connected holds or may hold anything newer.
  const Worker* source = SourceAmong(team.members, context.history, saves);
  if (source == nullptr) {
    if (SomebodyMayHoldNewer(context, life, saves)) return {};
    if (saves.Saving(saves.published().step + 1)) return {};  // what is about to be published is newer
    if (gathering.AwaitsMore(context, life, team)) return {};
    if (const auto failed = life.CountFailedRestore(context.roster)) {
      return {Kind::kDamaged,
              {},
              {},
              absl::StrCat("restoring ", saves.published().ToString(), " failed ", failed->in_a_row,
                           " times in a row: ", failed->failure,
                           ". Start the chief again: it verifies the checkpoints and sets damaged ones aside")};
    }
  } else if (context.policy.lineage_per_generation && saves.PublishesBeyond(source->held->position.step)) {
    // With one lineage per generation, the next state must descend from the committed one: while a commit of a later
    // step is under way, that is the newer state.
    return {};
  }
  return {Kind::kForm, std::move(team), {}, ""};
}

}  // namespace lockstep::chief
