// Who forms the next generation and from what; who waits, who leaves, what boundary is asked for (rules 3, 6, 9, 11,
// 12, 21).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

bool Coordinator::HoldsCurrent(const Worker& worker) const {
  return worker.AtRest() && worker.held.has_value() &&
         history_.Includes(worker.held->lineage, worker.held->position.step);
}

Worker* Coordinator::BestAtRest(bool leavers_too) {
  Worker* best = nullptr;
  for (Worker* worker : roster_.InOrder()) {
    if (!HoldsCurrent(*worker) || worker->dismissed || (worker->leaving && !leavers_too)) continue;
    if (best == nullptr || worker->held->position > best->held->position) best = worker;
  }
  return best;
}

void Coordinator::AdvanceWaiting() {
  if (!AdvanceReturn()) return;
  Worker* best = BestAtRest(/*leavers_too=*/true);
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
  Worker* staying_best = BestAtRest(/*leavers_too=*/false);
  const bool leaver_holds_more = best != nullptr && best->leaving &&
                                 (staying_best == nullptr || staying_best->held->position < best->held->position);
  const Team team = ChooseTeam(leaver_holds_more);
  if (team.in_doubt || (backoff_.Pauses(now_) && !EndPauseFor(team))) return;
  if (team.staying < policy_.min_workers) return Park(team.staying);
  parked_since_.reset();
  if (team.saved_first.has_value()) {
    return SaveAtRest(*team.saved_first, "its holder reaches fewer workers than there are without it");
  }

  // Newest live state first: the storage is read only when nobody connected holds or may hold anything newer.
  const Worker* source = nullptr;
  for (const Worker* worker : team.members) {
    if (HoldsCurrent(*worker) && (source == nullptr || worker->held->position > source->held->position)) {
      source = worker;
    }
  }
  const bool live = source != nullptr && source->held->position.step >= saves_.published().step;
  if (!live) {
    for (Worker* worker : roster_.InOrder()) {
      const bool may_hold = MayHoldNewer(*worker);
      if (may_hold) return;
    }
    if (saves_.Saving(saves_.published().step + 1)) return;  // what is about to be published is newer
    if (AwaitsMore(team)) return;
    CountFailedRestore();
    if (phase_ == Phase::kEnded) return;
  }
  // Under lineages of generations what goes on must contain what is committed: where a commit beyond it is under way,
  // that is the newer state.
  if (live && policy_.lineage_per_generation && saves_.PublishesBeyond(source->held->position.step)) return;
  FormGeneration(team);
}

void Coordinator::CountFailedRestore() {
  const std::string failure = std::exchange(current_.restore_failure, "");
  if (failure.empty()) return;
  // Who died while it restored has left the roster by now: a loss says nothing about the files.
  const bool all_live = std::all_of(current_.members.begin(), current_.members.end(),
                                    [&](const Member& member) { return roster_.Find(member.incarnation) != nullptr; });
  failed_restores_ = all_live ? failed_restores_ + 1 : 0;
  if (failed_restores_ < kFailedRestoresBeforeEnd) return;
  // What arrives is not what was published: only a new look at the files can help.
  EndJob(kExitStorage,
         absl::StrCat("restoring ", saves_.published().ToString(), " failed ", failed_restores_, " times in a row: ",
                      failure, ". Start the chief again: it verifies the checkpoints and sets damaged ones aside"));
}

// A restore costs all of them the same, so it waits a moment for those that are coming.
bool Coordinator::AwaitsMore(const Team& team) {
  if (Passed(last_call_until_)) return false;
  // Once a generation was formed, who is here and cannot join it is not about to.
  const uint32_t here = generations_ == 0 ? team.staying : team.present;
  if (policy_.expected_workers != 0) return here < policy_.expected_workers;
  // As many as stepped together last are all that can be counted on.
  const size_t enough = current_.id.IsNone() ? policy_.max_workers : current_.members.size();
  if (here >= std::min<size_t>(enough, policy_.max_workers)) return false;
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() && worker->AtRest() && !worker->leaving) return true;
  }
  return !Passed(last_came_ + kQuiet);
}

void Coordinator::FormGeneration(const Team& team) {
  const Worker* source = nullptr;
  for (const Worker* worker : team.members) {
    if (HoldsCurrent(*worker) && (source == nullptr || worker->held->position > source->held->position)) {
      source = worker;
    }
  }
  Form form;
  if (source != nullptr && source->held->position.step >= saves_.published().step) {
    form.position = source->held->position;
    for (size_t rank = 0; rank < team.members.size(); ++rank) {
      const Worker& worker = *team.members[rank];
      if (&worker == source) {
        form.source_rank = static_cast<uint32_t>(rank);
      } else if (!HoldsCurrent(worker) || worker.held->position != source->held->position ||
                 worker.held->digest != source->held->digest) {
        form.receivers.push_back(static_cast<uint32_t>(rank));
      }
    }
    form.reason = absl::StrCat("from the state of ", source->name());
  } else {
    form.restore = saves_.published();
    form.position = saves_.published_evaluated() ? RestoredPosition(policy_.training, saves_.published().step)
                                                 : Position{saves_.published().step, 0};
    form.ledger = saves_.published_ledger();
    form.reason = "from the newest checkpoint";
  }
  current_ = CurrentGeneration();
  current_.id = newest_ = Generation{term_, ++generations_};
  current_.begin = form.position;
  current_.agreed = progress_.agreed();
  current_.restores = form.restore.has_value();
  if (policy_.lineage_per_generation) {
    const Lineage lineage = LineageOf(job_lineage_, current_.id);
    if (current_.restores) {
      history_.BeginAs(lineage);
    } else {
      history_.GoOnAs(lineage, form.position.step);
      progress_.GoOnAs(lineage, form.position.step);
    }
  }
  form.lineage = history_.lineage();
  std::map<Incarnation, Position> positions;
  std::vector<std::string> names;
  for (const Worker* worker : team.members) {
    form.members.push_back(worker->member);
    positions[worker->id()] = form.position;
    names.push_back(worker->name());
  }
  for (const Member& member : form.members) current_.Add(member);
  for (Worker* worker : team.members) {
    worker->busy = current_.id;
    worker->held.reset();
    worker->verdict_sent = worker->finished = false;
    if (joined_.insert(worker->id()).second) {
      out_.Add(WorkerChanged{worker->name(), worker->id(), WorkerChange::kJoined,
                             absl::StrCat("generation ", current_.id.ToString())});
      joins_.Joined({worker->host, worker->name()}, progress_.agreed());
    }
  }
  out_.CommandAll(team.members, current_.id, form, form.reason);
  progress_.Begin(history_.lineage(), positions);
  BeginAudit(form);
  broke_by_.clear();
  phase_ = Phase::kForming;
  out_.Say(Level::kInfo, absl::StrCat("generation ", current_.id.ToString(), ": ", absl::StrJoin(names, ", "), " at ",
                                      form.position.ToString(), ", ", form.reason));
  TellProgress();
}

void Coordinator::Park(uint32_t staying) {
  if (!parked_since_.has_value()) parked_since_ = now_;
  if (!Passed(*parked_since_ + policy_.wait_for_min)) return;
  const std::string reason =
      absl::StrCat("only ", staying, " of at least ", policy_.min_workers, " workers came within ",
                   absl::FormatDuration(policy_.wait_for_min), ": ", AwaitedText());
  const Worker* best = BestAtRest(/*leavers_too=*/true);
  if (best != nullptr && saves_.IsNewer(best->held->position.step)) {
    return SaveAtRest(best->held->position, "the minimum of workers did not come");
  }
  if (!saves_.Busy()) EndJob(kExitPreempted, reason);
}

void Coordinator::SaveAtRest(const Position& position, const std::string& reason) {
  for (Worker* worker : roster_.InOrder()) {
    if (!HoldsCurrent(*worker) || worker->held->position != position || worker->rest_asked == position) continue;
    if (saves_.Holds(worker->id(), position.step)) continue;
    if (worker->stage == Worker::Stage::kPreparing) continue;  // its replica is being built anew: asked when it is
    worker->rest_asked = position;
    out_.Command(*worker, worker->last_generation, TakeSnapshot{history_.lineage(), position}, reason);
  }
}

// ---- leaving
// ---------------------------------------------------------------------------------------------------------

bool Coordinator::LastCopyLeaves(const Worker& leaver) {
  if (!HoldsCurrent(leaver) || !saves_.IsNewer(leaver.held->position.step)) return false;
  if (phase_ == Phase::kForming || phase_ == Phase::kRunning) return current_.begin < leaver.held->position;
  for (Worker* other : roster_.InOrder()) {
    if (other->leaving) continue;
    if (HoldsCurrent(*other) && other->held->position >= leaver.held->position) return false;
  }
  return true;
}

bool Coordinator::MayGo(const Worker& leaver) {
  if (phase_ == Phase::kAdopting || phase_ == Phase::kBreaking) return false;  // what others hold is not known yet
  if (phase_ != Phase::kFinishing) return leaver.AtRest();
  if (!leaver.finished) return leaver.AtRest();
  for (Worker* other : roster_.InOrder()) {
    if (!other->leaving && saves_.Holds(other->id(), final_step_)) return true;
  }
  return false;
}

void Coordinator::ServeLeavers() {
  if (repair_.pending()) return;  // what they hold is not worth a save, and what they tell still is
  ServeExcluded();
  const Worker* best = BestAtRest(/*leavers_too=*/true);
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->leaving || worker->dismissed || !MayGo(*worker)) continue;
    if (phase_ != Phase::kFinishing && LastCopyLeaves(*worker)) {
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

void Coordinator::Request(RequestKind kind, const std::string& reason) {
  if (!current_.requested.insert(kind).second) return;
  const uint64_t number = (term_ << 32) | ++requests_;
  std::vector<Worker*> members;
  for (const Member& member : current_.members) {
    if (Worker* worker = roster_.Find(member.incarnation)) members.push_back(worker);
  }
  out_.CommandAll(members, current_.id, BoundaryRequest{kind, number}, reason);
}

bool Coordinator::NewcomerFits() {
  if (current_.members.size() >= Capacity()) return false;
  bool fits = false;
  bool more = false;  // are on their way
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->AtRest() || worker->leaving || !pairs_.MayForm(worker->id(), now_)) continue;
    if (!worker->IsReady()) {
      more = true;
      continue;
    }
    const bool reaches_all = pairs_.ReachesAll(worker->id(), current_.ids);
    fits = fits || (reaches_all && joins_.MayAsk({worker->host, worker->name()}, now_));
    more = more || !(reaches_all || pairs_.KnowsAll(worker->id(), current_.ids));
  }
  return joins_.IsTime(fits, more, now_);
}

void Coordinator::RequestBoundaries() {
  if (trained_for_ >= policy_.max_duration && !ending_.has_value()) {
    ending_ = Ending{0, absl::StrCat("trained for ", absl::FormatDuration(policy_.max_duration)), /*evaluates=*/true};
  }
  if (ending_.has_value()) {
    return Request(ending_->evaluates ? RequestKind::kFinish : RequestKind::kStop, ending_->reason);
  }
  if (!saves_.Busy() && saves_.MustHold()) {
    Request(RequestKind::kSnapshotHold, "two saves were abandoned: the next one is waited for");
  } else if (!saves_.Busy() && now_ - last_save_ >= policy_.save_every && saves_.IsNewer(progress_.agreed())) {
    Request(RequestKind::kSnapshot, "a save is due");
  } else if (saves_.RetryDue(now_) && saves_.IsNewer(progress_.agreed())) {
    Request(RequestKind::kSnapshot, "the storage refused the save before");
  }
  if (policy_.training.samples_text && AnyMember([](const Worker& worker) { return worker.leaving; })) {
    Request(RequestKind::kForm, "a member leaves, and nobody is to write a text meanwhile");
  }
  if (AnyMember([](const Worker& worker) { return worker.drained; }))
    Request(RequestKind::kForm, "a member is drained");
  const auto is_excluded = [this](const Worker& worker) { return worker.leaving && hosts_.IsExcluded(worker.host); };
  if (hosts_.AnyExcluded() && AnyMember(is_excluded))
    Request(RequestKind::kForm, "a member is on a host that is left out");
  if (const std::string swap = SwapText(); !swap.empty()) Request(RequestKind::kForm, swap);
  if (NewcomerFits()) Request(RequestKind::kForm, "a worker is ready to join");
  if (LargerTeamWaits()) Request(RequestKind::kForm, "more workers reach each other than are members, but not these");
}

}  // namespace lockstep::chief
