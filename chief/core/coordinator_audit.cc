// What happens when replicas differ: who is named, how the job goes back to the newest audited checkpoint under a new
// lineage, and when it goes no further (rule 22).
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"
#include "common/protocol/repair_lineage.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::CompareDigest(const Worker& worker, uint64_t step, const Digest& digest) {
  if (audit_.Agrees(worker.id(), step, digest)) return;
  OnDifference(step, absl::StrCat("the states of replicas differ at step ", step));
}

void Coordinator::CompareHeld(const Worker& worker, const HeldState& held) {
  if (held.digest.empty() || held.lineage != history_.lineage()) return;
  CompareDigest(worker, held.position.step, held.digest);
}

void Coordinator::BeginAudit(const Form& form) {
  const std::vector<Incarnation> members = life_.current().Ids();
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
                                       "checkpoint"));
  saves_.AbandonAll("replicas differ", out_, roster_);
}

// Who is in the minority is known when all have told. Members step on meanwhile: what they compute is given up anyway.
bool Coordinator::GathersDigests() {
  const std::vector<Incarnation> awaited = audit_.Awaited();
  const bool comes = std::any_of(awaited.begin(), awaited.end(),
                                 [this](const Incarnation& id) { return roster_.Find(id) != nullptr; });
  return comes && !Context().Passed(repair_.limit());
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
  // No state of the old lineage counts from here on, whoever holds it and however far it came.
  job_lineage_ = event.lineage;
  history_.BeginAs(event.lineage);
  life_.Part();
  saves_.GoBack(event);
  progress_.GoOnAs(event.lineage, event.checkpoint.step);
  audit_.Restored(event.checkpoint.step, {});
  clock_.GoBack(event.trained_for, now_);
  gathering_.LastCall(now_);  // who comes later joins as ever
  const bool again = repair_.IsSoon();
  const std::string host = repair_.NamedTwice();
  std::vector<std::string> names;
  for (const AuditRepair::Named& named : repair_.named()) names.push_back(absl::StrCat(named.name, " on ", named.host));
  const std::string text =
      absl::StrCat(repair_.finding(), "; ",
                   names.empty() ? "nobody can be named"
                                 : absl::StrCat(absl::StrJoin(names, ", "), names.size() == 1 ? " differs" : " differ",
                                                " from the majority: memory or device there corrupts data"));
  out_.Say(Level::kError, absl::StrCat(text, ". The job goes back to step ", event.checkpoint.step,
                                       ", the newest audited checkpoint; newer ones are set aside"));
  SendNamedAway(repair_.named(), text);
  repair_.Done(now_);
  if (life_.Is(Phase::kDone)) {
    return EndJob(kExitBug,
                  absl::StrCat(text, ". Workers have ended already: start the job again; it resumes from step ",
                               event.checkpoint.step));
  }
  if (again) LeaveOutOrStop(host, text);
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
