// What each phase does when nothing else is to be done first.
#include <map>

#include "absl/strings/str_cat.h"
#include "chief/core/beginning.h"
#include "chief/core/coordinator.h"
#include "chief/core/leavers.h"
#include "chief/core/states_at_rest.h"
#include "chief/core/waiting_step.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::AdvanceAdopting() {
  if (FinishIfPublished()) return;
  const auto adoption = life_.AdvanceAdopting(Context(), saves_.published().lineage);
  if (!adoption.has_value()) return;
  const GenerationLife::Current& current = life_.current();
  history_.Rename(adoption->lineage);
  pairs_.FormedTogether(current.ids);
  progress_.Begin(history_.lineage(), adoption->positions);
  save_period_.Begin();
  audit_.Adopted(current.begin.step, current.Ids());
  gathering_.EndPark();
}

void Coordinator::AdvanceForming() {
  if (life_.AdvanceForming(Context())) pairs_.FormedTogether(life_.current().ids);
}

void Coordinator::AdvanceBreaking() {
  const auto finding = life_.AdvanceBreaking(Context(), progress_.agreed());
  if (!finding.has_value()) return;
  for (const Suspicion& suspicion : finding->suspicions) {
    if (suspicion.one == suspicion.other) {
      pairs_.SuspectItself(suspicion.one, now_);
    } else {
      pairs_.Suspect(suspicion.one, suspicion.other, suspicion.while_forming, now_);
    }
  }
  if (finding->all_in_doubt) pairs_.SuspectAll(life_.current().ids, now_);
  gathering_.LastCall(now_ + policy_.last_call);
}

void Coordinator::AdvanceFinishing() {
  if (FinishIfPublished() || saves_.Saving(life_.final_step())) return;
  Break(absl::StrCat("every worker that held the snapshot of step ", life_.final_step(), " is gone"));
}

void Coordinator::AdvanceDone() {
  if (repair_.pending()) return AdvanceRepair();
  if (!end_.MayExit(Context(), life_, gone_)) return;
  life_.End();
  out_.Add(Exit{end_.result()->code, end_.result()->reason});
}

void Coordinator::AdvanceWaiting() {
  if (!AdvanceReturn()) return;
  if (handover_.asked() && !end_.pending().has_value()) return SaveBeforeHandover();
  const WaitingStep next = NextWaitingStep(Context(), life_, gathering_, Teams(), saves_, end_);
  switch (next.kind) {
    case WaitingStep::Kind::kWait:
      return;
    case WaitingStep::Kind::kSave:
      return SaveAtRest(Context(), saves_, next.position, next.reason);
    case WaitingStep::Kind::kFinish:
      FinishIfPublished();
      return;
    case WaitingStep::Kind::kGiveUp:
      return EndJob(kExitPreempted, absl::StrCat("only ", next.team.staying, " of at least ", policy_.min_workers,
                                                 " workers came within ", absl::FormatDuration(policy_.wait_for_min),
                                                 ": ", AwaitedText(Awaited(Context()))));
    case WaitingStep::Kind::kDamaged:  // only a new look at the files can help
      return EndJob(kExitStorage, next.reason);
    case WaitingStep::Kind::kForm:
      return FormGeneration(next.team);
  }
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
    newcomers_.Joined(*worker, progress_.agreed());
  }
  progress_.Begin(history_.lineage(), positions);
  save_period_.Begin();
  BeginAudit(form);
  TellProgress();
}

void Coordinator::RequestBoundaries() {
  const CoreContext context = Context();
  const auto ask = [&](RequestKind kind, const std::string& reason) { life_.Request(context, kind, reason); };
  if (clock_.IsTimeUp(policy_)) {
    end_.Stop({0, absl::StrCat("trained for ", absl::FormatDuration(policy_.max_duration)), /*evaluates=*/true});
  }
  if (const auto& ending = end_.pending(); ending.has_value()) {
    return ask(ending->evaluates ? RequestKind::kFinish : RequestKind::kStop, ending->reason);
  }
  const bool hands_over = handover_.asked() && handover_.NeedsSave(saves_, progress_.agreed());
  if (!saves_.Busy() && saves_.MustHold()) {
    ask(RequestKind::kSnapshotHold, "two saves were abandoned: the next one is waited for");
  } else if (hands_over && !saves_.Busy() && saves_.TroubleText(now_).empty()) {
    ask(RequestKind::kSnapshot, handover_.reason());
  } else if (MaySave() && clock_.IsSaveDue(now_, SaveEvery()) && saves_.IsNewer(progress_.agreed())) {
    ask(RequestKind::kSnapshot, "a save is due");
  } else if (saves_.RetryDue(now_) && saves_.IsNewer(progress_.agreed())) {
    ask(RequestKind::kSnapshot, "the storage refused the save before");
  }
  const auto any = [&](const auto& is) { return life_.AnyMember(roster_, is); };
  if (policy_.training.samples_text && any([](const Worker& worker) { return worker.leaving; })) {
    ask(RequestKind::kForm, "a member leaves, and nobody is to write a text meanwhile");
  }
  if (any([](const Worker& worker) { return worker.drained; })) ask(RequestKind::kForm, "a member is drained");
  const auto is_excluded = [this](const Worker& worker) { return worker.leaving && hosts_.IsExcluded(worker.host); };
  if (hosts_.AnyExcluded() && any(is_excluded)) ask(RequestKind::kForm, "a member is on a host that is left out");
  if (!life_.HasRequested(RequestKind::kForm)) {
    const std::string swap = stragglers_.SwapText(context, Spares());
    if (!swap.empty()) ask(RequestKind::kForm, swap);
  }
  if (newcomers_.ShouldEndGeneration(context, life_.current(), pairs_))
    ask(RequestKind::kForm, "a worker is ready to join");
  if (Teams().LargerTeamWaits(life_.current().ids)) {
    ask(RequestKind::kForm, "more workers reach each other than are members, but not these");
  }
}

void Coordinator::Break(const std::string& reason) {
  if (!reason.empty()) life_.Break(Context(), reason, progress_.agreed());
}

void Coordinator::SaveBeforeHandover() {
  handover_.AtRest();
  const Worker* best = BestAtRest(history_, roster_, /*leavers_too=*/true);
  if (best == nullptr || !saves_.IsNewer(best->held->position.step)) return;
  SaveAtRest(Context(), saves_, best->held->position, handover_.reason());
}

void Coordinator::HandOverIfSaved() {
  if (!handover_.asked() || end_.pending().has_value() || end_.result().has_value() || repair_.pending()) return;
  if (!handover_.MayGo(Context(), life_, saves_, gone_, progress_.agreed())) return;
  life_.End();
  const std::string reason = absl::StrCat(handover_.reason(), ": step ", saves_.published().step,
                                          " is published; the workers wait for the next chief");
  out_.Say(Level::kInfo, reason);
  out_.Add(Exit{kExitPreempted, reason, /*handed_over=*/true});
}

bool Coordinator::FinishIfPublished() {
  if (repair_.pending()) return false;  // what is published may be wrong
  const auto ending = end_.Reached(Context(), life_, saves_, gone_, progress_.agreed());
  if (ending.has_value()) end_.Finish(Context(), *ending, life_, saves_, gone_);
  return ending.has_value();
}

}  // namespace lockstep::chief
