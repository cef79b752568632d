// Who comes and goes: Hello, names, leavers, losses (rules 8, 10, 13, 17, 21).
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "chief/core/leavers.h"
#include "chief/core/states_at_rest.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

void Coordinator::Refuse(SessionId session, int32_t code, const std::string& message) {
  out_.Say(Level::kWarning, absl::StrCat("a worker was refused: ", message));
  out_.Command(session, Generation(), Refused{code, message}, message);
  out_.Add(CloseSession{session, "refused"});
}

void Coordinator::RefuseWorker(Worker& worker, const std::optional<Preparation::Refusal>& refusal) {
  if (!refusal.has_value()) return;
  const std::string& message = refusal->message;
  out_.Say(Level::kError, absl::StrCat("refused ", worker.name(), " on ", worker.host, ": ", message));
  out_.Command(worker, Generation(), Refused{refusal->code, message}, message);
  Lose(worker.id(), WorkerChange::kRefused, message, /*close=*/true);
}

void Coordinator::OnHello(SessionId session, const WorkerFence& fence, const Hello& hello) {
  if (hello.highest_term > term_) {
    life_.End();
    out_.Add(Exit{kExitFenced, absl::StrCat("a worker on ", hello.host, " follows the chief of term ",
                                            hello.highest_term, "; this one has term ", term_)});
    return;
  }
  if (!hello.job.empty() && hello.job != policy_.job) {
    return Refuse(session, kExitBadJob,
                  absl::StrCat("it belongs to job ", hello.job, "; this chief runs job ", policy_.job,
                               ". Give the worker this chief's address, or none of the other job."));
  }
  if (hello.protocol != kProtocol) {
    return Refuse(session, kExitBadJob,
                  absl::StrCat("it speaks protocol ", hello.protocol, ", this chief ", kProtocol,
                               ": install the same version of Lockstep on both"));
  }
  if (fence.incarnation.IsNone()) return Refuse(session, kExitBadJob, "its Hello names no incarnation");
  if (const Worker* same = roster_.Find(fence.incarnation)) {
    const bool other_stream = same->session != session;
    Lose(fence.incarnation, WorkerChange::kLost, "it connected anew", /*close=*/other_stream);
  }
  if (const Worker* other = roster_.BySession(session)) {
    Lose(other->id(), WorkerChange::kLost, "another process took over its session", /*close=*/false);
  }
  if (roster_.size() >= kMaxWorkers) {
    return Refuse(session, kExitBadJob, absl::StrCat("this chief serves at most ", kMaxWorkers, " workers"));
  }
  const auto away = end_.result().has_value() ? std::nullopt : drains_.WhyTurnedAway(Context(), hello);
  if (away.has_value()) {
    out_.Command(session, Generation(), Refused{kExitPreempted, *away}, *away);
    out_.Add(CloseSession{session, "drained"});
    return;
  }
  // A process that was started again under its name, faster than the end of the old one's stream came in? Or a second
  // one beside it?
  if (const Worker* old = roster_.ByName(hello.preferred_name); old != nullptr && old->host == hello.host) {
    if (!names_.Add(session, fence, hello, now_)) Refuse(session, kExitBadJob, "too many workers ask for taken names");
    return;
  }
  const auto reserved = [this](const std::string& name) { return drains_.drains().Has(name); };
  Worker worker;
  worker.member = Member{fence.incarnation, roster_.FreeName(hello.preferred_name, reserved), hello.peer_address};
  worker.session = session;
  worker.host = hello.host;
  worker.device = hello.device;
  worker.step = hello.position.step;
  worker.heard = worker.progressed = now_;
  worker.leaving = hello.leaving;
  gathering_.Came(now_);
  Admit(roster_.Add(std::move(worker)), hello);
}

void Coordinator::Admit(Worker& worker, const Hello& hello) {
  if (hello.has_state) TakeUpLineage(hello.lineage);
  drains_.Came(Context(), worker);
  gone_.Came(worker.id(), worker.name());
  hosts_.Came(worker);
  const Generation fence_generation = hello.activity == Activity::kIdle ? Generation() : hello.generation;
  out_.Command(worker, fence_generation,
               Welcome{policy_.job, worker.name(), history_.lineage(), policy_.metagraph, policy_.training},
               absl::StrCat("Hello of ", worker.name(), " on ", hello.host));
  HearOfDifference(worker, hello);
  if (end_.result().has_value()) return end_.Tell(Context(), worker, saves_, gone_);
  worker.Keeps(hello.kept);
  AnswerByHello(worker, hello);
  for (Worker* other : life_.TakeIn(Context(), worker, hello, progress_)) TakeEarlySnapshots(*other);
  if (worker.finished) WelcomeFinished(worker, hello);
  if (hello.ready.has_value()) RefuseWorker(worker, preparation_.Kept(Context(), worker, *hello.ready, pairs_));
}

void Coordinator::TakeUpLineage(const Lineage& lineage) {
  // Once a generation was adopted or formed, the history is the one that it goes on with, whatever others name.
  if (!policy_.lineage_per_generation || !life_.IsFirst() || JobLineage(lineage) != job_lineage_) return;
  if (BegunBy(lineage) <= BegunBy(history_.lineage())) return;
  history_.Rename(lineage);
  progress_.GoOnAs(lineage, progress_.agreed());
}

void Coordinator::WelcomeFinished(Worker& worker, const Hello& hello) {
  // The last snapshot is what the job waits for. Others are told again by SnapshotTaken once the worker is welcome.
  const bool evaluated = hello.position >= RestoredPosition(policy_.training, hello.position.step);
  // Until somebody names the members it waits for that message as well.
  if (worker.claims == nullptr && !worker.claim.empty()) return;
  std::vector<Incarnation> members;
  if (worker.claims != nullptr) {
    for (const Member& member : *worker.claims) members.push_back(member.incarnation);
  }
  for (const SnapshotId& snapshot : hello.snapshots) {
    if (snapshot.lineage != history_.lineage() || snapshot.step != hello.position.step) continue;
    CompareDigest(worker, snapshot.step, snapshot.digest);
    if (repair_.pending()) return;
    const std::string finding =
        saves_.Taken(worker.id(), SnapshotTaken{hello.generation, snapshot, SnapshotCause::kEnd, hello.ledger},
                     evaluated, members, /*audits=*/!members.empty(), out_, roster_);
    if (!finding.empty()) OnDifference(worker, snapshot, finding);
  }
}

void Coordinator::ServeNames() {
  for (const SessionId session : names_.Sessions()) {
    if (life_.Is(Phase::kEnded)) return;
    const NameClaims::Verdict verdict = names_.Judge(session, roster_, gone_);
    if (verdict == NameClaims::Verdict::kWaits) continue;
    NameClaims::Claim claim = names_.Take(session);
    const Worker* holder = roster_.ByName(claim.hello.preferred_name);
    if (verdict == NameClaims::Verdict::kHolderIsDead) {
      Lose(holder->id(), WorkerChange::kLost, "its supervisor saw its process end", /*close=*/true);
    } else if (verdict == NameClaims::Verdict::kHolderLives) {
      out_.Say(Level::kWarning,
               absl::StrCat("another process on ", claim.hello.host, " asks for the name ", holder->name(),
                            ", which a worker has that is alive: it gets another one"));
      claim.hello.preferred_name.clear();
    }
    OnHello(session, claim.fence, claim.hello);
  }
}

void Coordinator::ServeLeavers() {
  if (repair_.pending()) return;  // what they hold is not worth a save, and what they tell still is
  hosts_.MarkExcluded(Context());
  const Worker* best = BestAtRest(history_, roster_, /*leavers_too=*/true);
  std::optional<Position> newest_leaver;  // a copy: who holds it may be gone before the others are looked at
  if (best != nullptr && best->leaving) newest_leaver = best->held->position;
  const std::string done = "its state is not needed any more";
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->leaving || worker->dismissed) continue;
    const LeaverStep next = NextStepOf(Context(), life_, saves_, *worker, newest_leaver);
    if (next == LeaverStep::kIsSaved) {
      SaveAtRest(Context(), saves_, worker->held->position, "its last copy would leave");
    } else if (next == LeaverStep::kGoes && hosts_.IsExcluded(worker->host)) {
      RefuseWorker(*worker, {{kExitBadJob, hosts_.RefusalText(worker->host)}});
    } else if (next == LeaverStep::kGoes && worker->unfit.has_value()) {
      RefuseWorker(*worker, {{worker->unfit->exit_code, worker->unfit->message}});
    } else if (next == LeaverStep::kGoes && worker->drained) {
      drains_.Dismiss(Context(), *worker, done);
    } else if (next == LeaverStep::kGoes) {
      worker->dismissed = true;
      out_.Command(*worker, worker->last_generation, Dismiss{done}, "nobody loses anything by its leaving");
    }
  }
}

void Coordinator::On(const SessionClosed& event) {
  names_.Close(event.session);
  const Worker* worker = roster_.BySession(event.session);
  if (worker == nullptr) return;
  Lose(worker->id(), WorkerChange::kLost, absl::StrCat("its session ended: ", event.reason), /*close=*/false);
}

void Coordinator::Lose(Incarnation incarnation, WorkerChange change, const std::string& reason, bool close) {
  const Worker* worker = roster_.Find(incarnation);
  if (worker == nullptr) return;
  const std::string name = worker->name();
  const std::string host = worker->host;
  const bool member = life_.IsMember(*worker);
  const bool holds = MayHoldNewer(Context(), life_, saves_, *worker);
  if (change != WorkerChange::kLost) {  // it will not come back to it
    life_.GiveUp(worker->busy);
    floor_.Ended(incarnation);
  }
  if (close) out_.Add(CloseSession{worker->session, reason});
  const bool done = life_.Is(Phase::kDone);
  if (!done) {
    out_.Add(WorkerChanged{name, incarnation, change, reason});
    gone_.Count(name, change, reason);
    if (member) save_period_.Lost();
  }
  roster_.Remove(incarnation);
  const bool had_joined = life_.Forget(incarnation, name, now_);
  if (had_joined && !done) newcomers_.Lost(Context(), host, name, progress_.agreed());
  stragglers_.Forget(incarnation);
  drains_.Forget(incarnation);
  pairs_.Forget(incarnation);
  saves_.HolderGone(incarnation);
  repair_.way().Lost(incarnation, now_);
  gone_.Went(incarnation, name, change, holds, now_);
  if (member) life_.MemberLost(Context(), name, reason, progress_);
}

void Coordinator::LoseTheLifeless() {
  for (const Worker* worker : roster_.InOrder()) {
    const LifeSigns::Judgement judgement = signs_.Judge(*worker, now_, policy_.heartbeat_limit);
    if (judgement.sign == LifeSigns::Sign::kLives) continue;
    if (judgement.sign == LifeSigns::Sign::kSilent) {
      life_.NoteSilence(Context());
    } else {
      life_.GiveUp(worker->busy);  // its session lives: it would come back as it is
    }
    Lose(worker->id(), WorkerChange::kLost, judgement.reason, /*close=*/true);
  }
}

}  // namespace lockstep::chief
