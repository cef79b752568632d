// What happens when replicas differ: who is named, how the job goes back to the newest audited checkpoint under a new
// lineage, and when it goes no further (rule 22).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"
#include "common/protocol/repair_lineage.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::CompareDigest(const Worker& worker, uint64_t step, const Digest& digest) {
  const uint64_t audited = audit_.NewestAudited();
  const bool agrees = audit_.Agrees(worker.id(), step, digest, clock_.trained_for());
  if (audit_.NewestAudited() > audited) {
    floor_.Passed(audit_.members());
    floor_.GiveUp(now_, policy_.training.chief_timeout);
  }
  if (agrees) return;
  OnDifference(step, absl::StrCat("the states of replicas differ at step ", step));
}

// Of a worker at rest, where its acknowledgement has a digest.
void Coordinator::CompareHeld(const Worker& worker, const HeldState& held) {
  if (held.digest.empty() || held.lineage != history_.lineage()) return;
  CompareDigest(worker, held.position.step, held.digest);
}

void Coordinator::BeginAudit(const Form& form) {
  const std::vector<Incarnation> members = life_.current().Ids();
  std::set<Incarnation> before;
  for (const Incarnation& each : audit_.members()) {
    if (roster_.Find(each) != nullptr || gone_.MayReturn(each)) before.insert(each);
  }
  floor_.Forms(before, life_.current().ids, audit_.NewestAudited(), now_);
  if (form.restore.has_value()) return audit_.Restored(form.position.step, members);
  std::set<Incarnation> receivers;
  for (const uint32_t rank : form.receivers) receivers.insert(members[rank]);
  audit_.GoesOn(form.position.step, members, members[form.source_rank], receivers,
                /*same_bits=*/!policy_.lineage_per_generation);
}

void Coordinator::OnDifference(uint64_t step, const std::string& finding) {
  if (!repair_.Found(step, finding, now_ + AckWindow(Context()))) return;
  out_.Say(Level::kError, absl::StrCat(finding,
                                       ": nothing more is saved, and the job goes back to its newest audited "
                                       "state"));
  saves_.AbandonAll("replicas differ", out_, roster_);
  out_.CommandAll(roster_.InOrder(), Generation(), StatesDiffer{history_.lineage(), step}, finding);
}

// A chief before this one may have ended before it could record what it had found, and the replica that was hit may be
// out of reach now.
void Coordinator::HearOfDifference(const Worker& worker, const Hello& hello) {
  if (!hello.differ.has_value() || JobLineage(hello.differ->lineage) != job_lineage_) return;
  if (!history_.Includes(hello.differ->lineage, hello.differ->step)) return;
  OnDifference(hello.differ->step, absl::StrCat("the states of replicas differ at step ", hello.differ->step,
                                                ", as an earlier chief told ", worker.name()));
}

void Coordinator::OnDifference(Worker& worker, const SnapshotId& snapshot, const std::string& finding) {
  out_.Command(worker, Generation(), SnapshotEnded{snapshot, false}, finding);
  OnDifference(snapshot.step, absl::StrCat(worker.name(), ": ", finding));
}

// The minority is known once all members have reported. They step on meanwhile; what they compute is given up anyway.
bool Coordinator::GathersDigests() {
  const std::vector<Incarnation> awaited = audit_.Awaited();
  const bool comes = std::any_of(awaited.begin(), awaited.end(),
                                 [this](const Incarnation& id) { return roster_.Find(id) != nullptr; });
  return comes && repair_.Gathers() && !Context().Passed(repair_.limit());
}

void Coordinator::BreakToRepair() {
  if (GathersDigests()) return;
  if (!life_.Is(Phase::kAdopting)) return Break(repair_.finding());
  life_.EndClaims(Context(), repair_.finding());
}

void Coordinator::AdvanceRepair() {
  if (GathersDigests() || !repair_.MayRecord(now_)) return;
  // A commit that is under way cannot be called back: its answer comes first.
  if (!saves_.AbandonAll("replicas differ", out_, roster_)) return;
  std::vector<AuditRepair::Named> named;
  for (const Incarnation& id : audit_.Minority()) {
    if (const Worker* worker = roster_.Find(id)) named.push_back({id, worker->name(), worker->host});
  }
  out_.Add(repair_.Record(RepairedLineage(job_lineage_), std::move(named)));
}

void Coordinator::On(const RepairFailed& event) {
  if (!repair_.IsOrdered(event.lineage)) return;
  const std::string what =
      absl::StrCat(repair_.finding(), ", and the job cannot go back to an audited checkpoint: ", event.message);
  if (!event.may_pass) return EndJob(kExitStorage, what);
  if (repair_.Refused(now_, what)) {
    out_.Say(Level::kError, absl::StrCat(what, ". It is tried again until the storage takes it"));
  }
}

void Coordinator::On(const RepairRecorded& event) {
  if (!repair_.IsOrdered(event.lineage)) return;
  const bool again = repair_.IsSoon();
  const bool at_once = again || life_.Is(Phase::kDone) || end_.pending().has_value();
  const std::vector<AuditReturn::Offer> offers = at_once ? std::vector<AuditReturn::Offer>() : KeptOffers(event);
  // No state of the old lineage counts from here on, whoever holds it and however far it came.
  job_lineage_ = event.lineage;
  history_.BeginAs(event.lineage);
  life_.Part();
  saves_.GoBack(event);
  floor_.WentBack(event.checkpoint.step);
  progress_.Begin(event.lineage, {});  // nobody steps, and what was applied before tells nothing
  save_period_.Begin();
  clock_.Saved(now_);
  gathering_.NoLastCall(now_);
  const std::string host = repair_.NamedTwice();
  WentBack told{event.lineage, event.checkpoint.step, false, repair_.found_at(), {}, {}, event.ledger, ""};
  std::vector<std::string> names;
  for (const AuditRepair::Named& named : repair_.named()) {
    names.push_back(absl::StrCat(named.name, " on ", named.host));
    told.names.push_back(named.name);
    told.hosts.push_back(named.host);
  }
  const std::string text =
      absl::StrCat(repair_.finding(), "; ",
                   names.empty() ? "nobody can be named"
                                 : absl::StrCat(absl::StrJoin(names, ", "), names.size() == 1 ? " differs" : " differ",
                                                " from the majority: memory or device there corrupts data"));
  told.reason = text;
  SendNamedAway(repair_.named(), text);
  repair_.Done(now_);
  repair_.way().Begin({std::move(told), event.trained_for}, offers);
  audit_.Restored(repair_.way().Newest().value_or(event.checkpoint.step), {});
  if (at_once) AdvanceReturn();
  if (life_.Is(Phase::kDone)) {
    return EndJob(kExitBug,
                  absl::StrCat(text, ". Workers have ended already: start the job again; it resumes from step ",
                               event.checkpoint.step));
  }
  if (again) LeaveOutOrStop(host, text);
}

// Between the checkpoint and a newer one that was set aside nothing was published, so that all that a state there says
// of earlier evaluations still stands on the disk.
std::vector<AuditReturn::Offer> Coordinator::KeptOffers(const RepairRecorded& event) {
  std::vector<AuditReturn::Offer> offers;
  const std::vector<AuditRepair::Named>& named = repair_.named();
  for (const Worker* worker : roster_.InOrder()) {
    const bool is_named =
        std::any_of(named.begin(), named.end(), [&](const auto& one) { return one.id == worker->id(); });
    if (is_named || !worker->AtRest() || !worker->IsReady() || worker->leaving || worker->dismissed) continue;
    for (const KeptState& kept : worker->kept) {
      const uint64_t step = kept.position.step;
      const Audit::Audited* audited = audit_.AuditedAt(step);
      const bool lies_between = step > event.checkpoint.step && step <= repair_.found_at() &&
                                (event.set_aside_from == 0 || step < event.set_aside_from);
      if (audited == nullptr || audited->digest != kept.digest || !lies_between) continue;
      if (history_.Includes(kept.lineage, step)) offers.push_back({worker->id(), kept, audited->trained_for});
    }
  }
  return offers;
}

bool Coordinator::AdvanceReturn() {
  AuditReturn& way = repair_.way();
  if (!way.pending()) return true;
  const auto is_there = [this](const Incarnation& id) {
    const Worker* worker = roster_.Find(id);
    return worker != nullptr && worker->AtRest() && worker->IsReady();
  };
  if (end_.pending().has_value()) way.StopTrying();
  if (is_tick_) {
    // A worker that is still busy cannot be a member of the next generation, which it would break.
    for (const Incarnation& late : way.TakeLate(now_)) {
      Lose(late, WorkerChange::kLost, "it did not take up its copy in time", /*close=*/true);
    }
  }
  for (;;) {
    if (const std::optional<AuditReturn::Outcome> outcome = way.Take()) {
      GoOnFrom(*outcome);
      return true;
    }
    if (way.Waits()) return false;
    absl::Duration window;
    for (const Worker* worker : roster_.InOrder()) window = std::max(window, worker->ready.longest_node);
    const auto order = way.Next(now_ + policy_.ack_limit + window + AuditReturn::kPatience, is_there);
    if (!order.has_value()) continue;  // none of the others is here: the checkpoint is left
    for (const Incarnation& holder : order->holders) {
      Worker& worker = *roster_.Find(holder);
      out_.Command(worker, worker.last_generation, ReturnTo{order->state, job_lineage_},
                   absl::StrCat("all had this state at ", order->state.position.ToString()));
    }
    return false;
  }
}

void Coordinator::GoOnFrom(const AuditReturn::Outcome& outcome) {
  clock_.GoBack(outcome.trained_for, now_);
  progress_.GoOnAs(outcome.told.lineage, outcome.told.step);
  out_.Say(Level::kError, absl::StrCat(outcome.told.reason, ". The job goes back to step ", outcome.told.step,
                                       outcome.told.from_copy ? ", an audited state that workers kept in memory"
                                                              : ", the newest audited checkpoint",
                                       "; newer checkpoints are set aside"));
  out_.Add(outcome.told);
}

void Coordinator::OnMessage(Worker& worker, const Returned& message) {
  if (!worker.AtRest()) return;  // it stepped on since, as a member of a generation that this chief formed
  if (message.done) {
    GenerationLife::TookUp(worker, HeldState{job_lineage_, message.state.position, message.state.digest});
  } else {
    out_.Say(Level::kWarning,
             absl::StrCat(worker.name(), " cannot take up ", message.state.ToString(), ": ", message.message));
  }
  repair_.way().Answered(worker.id(), message.state, message.done);
}

void Coordinator::AnswerByHello(const Worker& worker, const Hello& hello) {
  const bool has = hello.activity == Activity::kIdle && hello.has_state && hello.lineage == job_lineage_;
  repair_.way().CameBack(worker.id(), has ? std::optional(hello.position) : std::nullopt);
}

void Coordinator::SendNamedAway(const std::vector<AuditRepair::Named>& named, const std::string& reason) {
  for (const AuditRepair::Named& each : named) {
    const Worker* worker = roster_.Find(each.id);
    if (worker == nullptr) continue;
    hosts_.CountMismatch(Context(), *worker, reason);
    out_.Command(*worker, Generation(), Shutdown{kExitPreempted, absl::StrCat(reason, "; to be started again")},
                 "its state differs from the majority's");
    Lose(each.id, WorkerChange::kDigestMismatch, reason, /*close=*/true);
  }
}

// It is the second time in a row; `host` was named both times, if any was.
void Coordinator::LeaveOutOrStop(const std::string& host, const std::string& finding) {
  if (host.empty() || !hosts_.MayExclude() || !hosts_.OthersSuffice(Context(), host)) {
    return EndJob(kExitBug,
                  absl::StrCat(finding, ". It is the second time within ", AuditRepair::kSoon,
                               " steps: find the machine that corrupts data, and start the job again without it; it "
                               "resumes from step ",
                               saves_.published().step));
  }
  if (!hosts_.IsExcluded(host)) hosts_.Exclude(Context(), host);
  for (Worker* worker : roster_.InOrder()) {
    if (worker->host == host) RefuseWorker(*worker, {{kExitBadJob, hosts_.RefusalText(host)}});
  }
}

}  // namespace lockstep::chief
