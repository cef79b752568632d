// Who forms the next generation and from what; who waits, who leaves, what boundary is asked for (rules 3, 6, 9, 11,
// 12, 21).
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/beginning.h"
#include "chief/core/coordinator.h"
#include "chief/core/states_at_rest.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

TeamChoice Coordinator::Teams() {
  return TeamChoice({roster_, pairs_, history_, policy_.replace_stragglers ? &stragglers_ : nullptr,
                     saves_.FirstUnsaved(), Capacity(policy_), now_});
}

void Coordinator::AdvanceWaiting() {
  Worker* best = BestAtRest(history_, roster_, /*leavers_too=*/true);
  const bool at_end = best != nullptr && best->held->position.step >= policy_.training.end_step &&
                      best->held->position >= RestoredPosition(policy_.training, policy_.training.end_step);
  if (at_end || ending_.has_value()) {
    const bool completes = at_end && !saves_.published_evaluated();
    if (best != nullptr && (completes || saves_.IsNewer(best->held->position.step))) {
      SaveAtRest(best->held->position, at_end ? "the last step" : ending_->reason);
    } else if (!saves_.Busy()) {
      FinishIfPublished();
    }
    return;
  }
  Worker* staying_best = BestAtRest(history_, roster_, /*leavers_too=*/false);
  const bool leaver_holds_more = best != nullptr && best->leaving &&
                                 (staying_best == nullptr || staying_best->held->position < best->held->position);
  const Team team = Teams().Choose(leaver_holds_more);
  if (team.in_doubt || (life_.backoff().Pauses(now_) && !life_.EndPauseFor(team.members, now_))) return;
  if (team.staying < policy_.min_workers) return Park(team.staying);
  parked_since_.reset();
  if (team.saved_first.has_value()) {
    return SaveAtRest(*team.saved_first, "its holder reaches fewer workers than there are without it");
  }

  // Newest live state first: the storage is read only when nobody connected holds or may hold anything newer.
  const Worker* source = SourceAmong(team.members, history_, saves_);
  if (source == nullptr) {
    for (Worker* worker : roster_.InOrder()) {
      const bool may_hold = MayHoldNewer(*worker);
      if (may_hold) return;
    }
    if (saves_.Saving(saves_.published().step + 1)) return;  // what is about to be published is newer
    if (AwaitsMore(team)) return;
    if (const auto failed = life_.CountFailedRestore(roster_)) {
      // What arrives is not what was published: only a new look at the files can help.
      return EndJob(kExitStorage,
                    absl::StrCat("restoring ", saves_.published().ToString(), " failed ", failed->in_a_row,
                                 " times in a row: ", failed->failure,
                                 ". Start the chief again: it verifies the checkpoints and sets damaged ones aside"));
    }
  } else if (policy_.lineage_per_generation && saves_.PublishesBeyond(source->held->position.step)) {
    // Under lineages of generations what goes on must contain what is committed: where a commit beyond it is under way,
    // that is the newer state.
    return;
  }
  FormGeneration(team);
}

// A restore costs all of them the same, so it waits a moment for those that are coming.
bool Coordinator::AwaitsMore(const Team& team) {
  if (Context().Passed(last_call_until_)) return false;
  // Once a generation was formed, who is here and cannot join it is not about to.
  const uint32_t here = !life_.HasFormed() ? team.staying : team.present;
  if (policy_.expected_workers != 0) return here < policy_.expected_workers;
  // As many as stepped together last are all that can be counted on.
  const size_t enough = life_.current().id.IsNone() ? policy_.max_workers : life_.current().members.size();
  if (here >= std::min<size_t>(enough, policy_.max_workers)) return false;
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() && worker->AtRest() && !worker->leaving) return true;
  }
  return !Context().Passed(last_came_ + kQuiet);
}

void Coordinator::FormGeneration(const Team& team) {
  Form form = BeginningOf(team.members, history_, saves_, policy_.training);
  const uint64_t agreed = progress_.agreed();
  if (policy_.lineage_per_generation) {
    const Lineage lineage = LineageOf(job_lineage_, life_.NextId(term_));
    if (form.restore.has_value()) {
      history_.BeginAs(lineage);
    } else {
      history_.GoOnAs(lineage, form.position.step);
      progress_.GoOnAs(lineage, form.position.step);
    }
  }
  form.lineage = history_.lineage();
  std::map<Incarnation, Position> positions;
  for (const Worker* worker : team.members) {
    form.members.push_back(worker->member);
    positions[worker->id()] = form.position;
  }
  for (const Worker* worker : life_.SendForm(Context(), form, team.members, agreed)) {
    joins_.Joined({worker->host, worker->name()}, progress_.agreed());
  }
  progress_.Begin(history_.lineage(), positions);
  BeginAudit(form);
  TellProgress();
}

void Coordinator::Park(uint32_t staying) {
  if (!parked_since_.has_value()) parked_since_ = now_;
  if (!Context().Passed(*parked_since_ + policy_.wait_for_min)) return;
  const std::string reason =
      absl::StrCat("only ", staying, " of at least ", policy_.min_workers, " workers came within ",
                   absl::FormatDuration(policy_.wait_for_min), ": ", AwaitedText());
  const Worker* best = BestAtRest(history_, roster_, /*leavers_too=*/true);
  if (best != nullptr && saves_.IsNewer(best->held->position.step)) {
    return SaveAtRest(best->held->position, "the minimum of workers did not come");
  }
  if (!saves_.Busy()) EndJob(kExitPreempted, reason);
}

void Coordinator::SaveAtRest(const Position& position, const std::string& reason) {
  for (Worker* worker : roster_.InOrder()) {
    if (!HoldsCurrent(history_, *worker) || worker->held->position != position || worker->rest_asked == position)
      continue;
    if (saves_.Holds(worker->id(), position.step)) continue;
    if (worker->stage == Worker::Stage::kPreparing) continue;  // its replica is being built anew: asked when it is
    worker->rest_asked = position;
    out_.Command(*worker, worker->last_generation, TakeSnapshot{history_.lineage(), position}, reason);
  }
}

// ---- leaving
// ---------------------------------------------------------------------------------------------------------

bool Coordinator::LastCopyLeaves(const Worker& leaver) {
  if (!HoldsCurrent(history_, leaver) || !saves_.IsNewer(leaver.held->position.step)) return false;
  if (life_.Is(Phase::kForming) || life_.Is(Phase::kRunning)) return life_.current().begin < leaver.held->position;
  for (Worker* other : roster_.InOrder()) {
    if (other->leaving) continue;
    if (HoldsCurrent(history_, *other) && other->held->position >= leaver.held->position) return false;
  }
  return true;
}

bool Coordinator::MayGo(const Worker& leaver) {
  if (life_.Is(Phase::kAdopting) || life_.Is(Phase::kBreaking)) return false;  // what others hold is not known yet
  if (!life_.Is(Phase::kFinishing)) return leaver.AtRest();
  if (!leaver.finished) return leaver.AtRest();
  for (Worker* other : roster_.InOrder()) {
    if (!other->leaving && saves_.Holds(other->id(), life_.final_step())) return true;
  }
  return false;
}

void Coordinator::ServeLeavers() {
  if (repair_.pending()) return;  // what they hold is not worth a save, and what they tell still is
  ServeExcluded();
  const Worker* best = BestAtRest(history_, roster_, /*leavers_too=*/true);
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->leaving || worker->dismissed || !MayGo(*worker)) continue;
    if (!life_.Is(Phase::kFinishing) && LastCopyLeaves(*worker)) {
      // A grace may be short: of several steps that would leave the newest is saved, and settles the others.
      if (best != nullptr && best->leaving && best->held->position > worker->held->position) continue;
      SaveAtRest(worker->held->position, "its last copy would leave");
      continue;
    }
    if (hosts_.IsExcluded(worker->host)) {
      RefuseWorker(*worker, kExitBadJob, hosts_.RefusalText(worker->host));
      continue;
    }
    worker->dismissed = true;
    if (worker->drained) {
      DismissDrained(*worker, "its state is not needed any more");
      continue;
    }
    out_.Command(*worker, worker->last_generation, Dismiss{"its state is not needed any more"},
                 "nobody loses anything by its leaving");
  }
}

// ---- boundaries
// ------------------------------------------------------------------------------------------------------

bool Coordinator::NewcomerFits() {
  if (life_.current().members.size() >= Capacity(policy_)) return false;
  bool fits = false;
  bool more = false;  // are on their way
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->AtRest() || worker->leaving || !pairs_.MayForm(worker->id(), now_)) continue;
    if (!worker->IsReady()) {
      more = true;
      continue;
    }
    const bool reaches_all = pairs_.ReachesAll(worker->id(), life_.current().ids);
    fits = fits || (reaches_all && joins_.MayAsk({worker->host, worker->name()}, now_));
    more = more || !(reaches_all || pairs_.KnowsAll(worker->id(), life_.current().ids));
  }
  return joins_.IsTime(fits, more, now_);
}

void Coordinator::RequestBoundaries() {
  if (trained_for_ >= policy_.max_duration && !ending_.has_value()) {
    ending_ = Ending{0, absl::StrCat("trained for ", absl::FormatDuration(policy_.max_duration)), /*evaluates=*/true};
  }
  if (ending_.has_value()) {
    return life_.Request(Context(), ending_->evaluates ? RequestKind::kFinish : RequestKind::kStop, ending_->reason);
  }
  if (!saves_.Busy() && saves_.MustHold()) {
    life_.Request(Context(), RequestKind::kSnapshotHold, "two saves were abandoned: the next one is waited for");
  } else if (!saves_.Busy() && now_ - last_save_ >= policy_.save_every && saves_.IsNewer(progress_.agreed())) {
    life_.Request(Context(), RequestKind::kSnapshot, "a save is due");
  } else if (saves_.RetryDue(now_) && saves_.IsNewer(progress_.agreed())) {
    life_.Request(Context(), RequestKind::kSnapshot, "the storage refused the save before");
  }
  if (policy_.training.samples_text && life_.AnyMember(roster_, [](const Worker& worker) { return worker.leaving; })) {
    life_.Request(Context(), RequestKind::kForm, "a member leaves, and nobody is to write a text meanwhile");
  }
  if (life_.AnyMember(roster_, [](const Worker& worker) { return worker.drained; }))
    life_.Request(Context(), RequestKind::kForm, "a member is drained");
  const auto is_excluded = [this](const Worker& worker) { return worker.leaving && hosts_.IsExcluded(worker.host); };
  if (hosts_.AnyExcluded() && life_.AnyMember(roster_, is_excluded))
    life_.Request(Context(), RequestKind::kForm, "a member is on a host that is left out");
  if (const std::string swap = SwapText(); !swap.empty()) life_.Request(Context(), RequestKind::kForm, swap);
  if (NewcomerFits()) life_.Request(Context(), RequestKind::kForm, "a worker is ready to join");
  if (Teams().LargerTeamWaits(life_.current().ids))
    life_.Request(Context(), RequestKind::kForm, "more workers reach each other than are members, but not these");
}

}  // namespace lockstep::chief
