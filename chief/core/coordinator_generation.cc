// A generation's life: adopted or formed, met at a boundary, broken on evidence, acknowledged (rules 4, 8, 10, 14).
#include <algorithm>
#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/coordinator.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

// ---- adoption
// --------------------------------------------------------------------------------------------------------

void Coordinator::AdvanceAdopting() {
  if (FinishIfPublished()) return;
  bool newest_is_over = false;
  std::map<Generation, bool> may_be_complete;  // its members all claim the same
  for (Worker* worker : roster_.InOrder()) {
    if (worker->AtRest()) continue;
    const auto [judged, first] = may_be_complete.try_emplace(worker->busy, true);
    if (first) {
      if (ClaimComplete(*worker)) return Adopt(*worker);
      judged->second = !IsOver(worker->busy) && !ClaimImpossible(*worker);
    }
    if (judged->second) continue;
    // Only this generation: members of a newer one may still come.
    newest_is_over = newest_is_over || worker->busy == newest_;
    SendVerdict(*worker, "a member of its generation runs it no more");
  }
  if (!newest_is_over && !Passed(deadline_)) return;
  // A worker that still runs a generation runs it without some of its members.
  phase_ = Phase::kBreaking;
  deadline_ = now_ + AckWindow();
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->AtRest()) SendVerdict(*worker, "not all members of its generation came back to the new chief");
  }
}

bool Coordinator::ClaimComplete(const Worker& witness) {
  if (witness.claims == nullptr || IsOver(witness.busy)) return false;
  for (const Member& member : *witness.claims) {
    const Worker* worker = roster_.Find(member.incarnation);
    if (worker == nullptr || worker->busy != witness.busy || worker->claims == nullptr ||
        worker->claims->size() != witness.claims->size()) {
      return false;
    }
    if (!worker->claimed.has_value() || worker->claimed->lineage != witness.claimed->lineage) return false;
  }
  // What an audit gave up is no part of the job. Under lineages of generations, one that began before what is published
  // is another life.
  const Lineage& lineage = witness.claimed->lineage;
  if (!policy_.lineage_per_generation) return lineage == job_lineage_;
  return JobLineage(lineage) == job_lineage_ && BegunBy(lineage) >= BegunBy(saves_.published().lineage);
}

bool Coordinator::ClaimImpossible(const Worker& witness) {
  bool left = false;
  if (witness.claims == nullptr) return false;
  for (const Member& member : *witness.claims) {
    const Worker* worker = roster_.Find(member.incarnation);
    if (worker == nullptr) return false;  // it may still come, and hold more than the others
    left = left || worker->busy != witness.busy || worker->verdict_sent;
  }
  return left;
}

void Coordinator::ListenAgain(const std::string& reason) {
  out_.Say(Level::kWarning, absl::StrCat(reason, ": members may step on without this chief; it listens for them"));
  const auto claims = std::make_shared<const std::vector<Member>>(current_.members);
  for (Worker* worker : roster_.InOrder()) {
    if (worker->AtRest() || worker->busy != current_.id) continue;
    worker->claims = claims;
    worker->claimed = HeldState{history_.lineage(), progress_.AppliedBy(worker->id()), Digest()};
  }
  current_ = CurrentGeneration();
  phase_ = Phase::kAdopting;
  phase_since_ = now_;
  deadline_ = now_ + policy_.heartbeat_limit;
}

bool Coordinator::MayGoOn(const Hello& hello) {
  if (IsOver(hello.generation)) return false;
  if (phase_ == Phase::kAdopting) return true;
  const std::vector<Worker*> workers = roster_.InOrder();
  return phase_ == Phase::kWaiting && hello.activity == Activity::kRunning &&
         std::all_of(workers.begin(), workers.end(), [](const Worker* worker) { return worker->AtRest(); });
}

void Coordinator::Adopt(const Worker& witness) {
  current_ = CurrentGeneration();
  current_.id = newest_ = witness.busy;
  history_.Rename(witness.claimed->lineage);
  bool finished = false;
  std::map<Incarnation, Position> positions;
  for (const Member& member : *witness.claims) {
    Worker& worker = *roster_.Find(member.incarnation);
    current_.Add(worker.member);
    current_.formed.insert(worker.id());
    if (current_.id.term == term_ && joined_.insert(worker.id()).second) {
      out_.Add(WorkerChanged{worker.name(), worker.id(), WorkerChange::kJoined, "it stepped on without this chief"});
    }
    current_.begin = std::max(current_.begin, worker.claimed->position);
    positions[worker.id()] = worker.claimed->position;
    if (worker.finished) {
      finished = true;
      final_step_ = worker.claimed->position.step;
    }
  }
  pairs_.FormedTogether(current_.ids);
  progress_.Begin(history_.lineage(), positions);
  audit_.Adopted(current_.begin.step, current_.Ids());
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->AtRest() && !current_.Has(worker->id())) SendVerdict(*worker, "another generation was adopted");
  }
  parked_since_.reset();
  phase_ = finished ? Phase::kFinishing : Phase::kRunning;
  out_.Say(Level::kInfo, absl::StrCat("generation ", current_.id.ToString(), " goes on under term ", term_, ", ",
                                      current_.members.size(), " members, ", current_.begin.ToString()));
}

// ---- breaking
// --------------------------------------------------------------------------------------------------------

absl::Duration Coordinator::AckWindow() {
  absl::Duration longest = absl::ZeroDuration();
  for (Worker* worker : roster_.InOrder()) {
    if (worker->IsReady() && !worker->AtRest()) longest = std::max(longest, worker->ready.longest_node);
  }
  return policy_.ack_limit + longest;
}

void Coordinator::SendVerdict(Worker& worker, const std::string& reason) {
  if (worker.verdict_sent) return;
  worker.verdict_sent = true;
  over_ = std::max(over_, worker.busy);
  out_.Command(worker, worker.busy, Verdict{reason}, reason);
}

void Coordinator::Break(const std::string& reason) {
  if (phase_ != Phase::kForming && phase_ != Phase::kRunning && phase_ != Phase::kBreaking &&
      phase_ != Phase::kFinishing) {
    return;
  }
  if (!current_.broken) backoff_.Broke(reason);
  current_.broken = true;
  if (phase_ != Phase::kBreaking) {
    out_.Say(Level::kWarning, absl::StrCat("generation ", current_.id.ToString(), " ends after step ",
                                           progress_.agreed(), ": ", reason));
  }
  phase_ = Phase::kBreaking;
  phase_since_ = now_;
  deadline_ = now_ + AckWindow();
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->AtRest()) SendVerdict(*worker, reason);
  }
}

void Coordinator::Rest(Worker& worker, const Generation& last, std::optional<HeldState> held) {
  over_ = std::max(over_, last);
  worker.busy = Generation();
  worker.verdict_sent = false;
  worker.finished = false;
  worker.claims.reset();
  worker.claimed.reset();
  worker.last_generation = last;
  worker.held = std::move(held);
  worker.rest_asked.reset();
  saves_.NotExpected(worker.id());
}

void Coordinator::OnMessage(Worker& worker, const VerdictAck& message) {
  if (worker.AtRest() || message.generation != worker.busy) return;  // repeated
  std::optional<HeldState> held;
  if (message.has_state) held = HeldState{message.lineage, message.position, message.digest};
  if (message.has_state) TakeUpLineage(message.lineage);
  if (held.has_value()) CompareHeld(worker, *held);
  Rest(worker, message.generation, std::move(held));
  worker.Keeps(message.kept);
}

void Coordinator::AdvanceBreaking() {
  std::vector<std::string> silent;
  bool all_told = true;
  for (Worker* worker : roster_.InOrder()) {
    if (worker->AtRest()) continue;
    silent.push_back(worker->name());
    all_told = all_told && worker->verdict_sent;
  }
  if (!silent.empty() && !Passed(deadline_)) return;
  if (!silent.empty() && !all_told) {
    return Break(absl::StrCat(absl::StrJoin(silent, ", "), " did not come to the boundary in time"));
  }
  if (!silent.empty()) {
    out_.Say(Level::kWarning, absl::StrCat(absl::StrJoin(silent, ", "),
                                           " did not acknowledge the end of the generation; it joins a later one"));
  }
  ConcludeBreak();
  phase_ = Phase::kWaiting;
  phase_since_ = now_;
  last_call_until_ = now_ + policy_.last_call;
}

// True when `worker` speaks of the generation that this chief holds for running. A worker that speaks of another one is
// told that it is over (rule 10).
bool Coordinator::InCurrent(Worker& worker, const Generation& generation) {
  if (worker.AtRest() || worker.busy != generation) return false;  // crossed with its own acknowledgement
  if (generation == current_.id && current_.Has(worker.id())) return true;
  SendVerdict(worker, absl::StrCat("generation ", generation.ToString(), " is over"));
  return false;
}

// ---- messages of members
// ---------------------------------------------------------------------------------------------

void Coordinator::OnMessage(Worker& worker, const AtBoundary& message) {
  if (!InCurrent(worker, message.generation)) return;
  progress_.Applied(worker.id(), message.position);
  worker.leaving = worker.leaving || message.leaving;
  worker.drained = worker.drained && !message.leaving;
  const bool first = phase_ == Phase::kRunning || phase_ == Phase::kForming;
  if (first) {
    phase_ = Phase::kBreaking;
    phase_since_ = now_;
    deadline_ = now_ + AckWindow();  // the others have the same word and are at most an update behind
    out_.Say(Level::kInfo,
             absl::StrCat("generation ", current_.id.ToString(), " meets at ", message.position.ToString()));
  }
  const HeldState held{message.lineage, message.position, message.digest};
  CompareHeld(worker, held);
  Rest(worker, message.generation, held);
  worker.Keeps(message.kept);
  TellProgress();
}

void Coordinator::OnMessage(Worker& worker, const Formed& message) {
  if (!InCurrent(worker, message.generation) || phase_ != Phase::kForming) return;
  if (message.position != current_.begin) {
    return Break(absl::StrCat(worker.name(), " stands at ", message.position.ToString(), " instead of ",
                              current_.begin.ToString()));
  }
  current_.formed.insert(worker.id());
}

void Coordinator::AdvanceForming() {
  if (current_.formed.size() < current_.members.size()) return;
  phase_ = Phase::kRunning;
  failed_restores_ = 0;
  pairs_.FormedTogether(current_.ids);
  out_.Say(Level::kInfo, absl::StrCat("generation ", current_.id.ToString(), " steps from ", current_.begin.ToString(),
                                      ", ", current_.members.size(), " workers"));
}

void Coordinator::OnMessage(Worker& worker, const PeerFailed& message) {
  if (!InCurrent(worker, message.generation)) return;
  saves_.NotExpected(worker.id());
  if (current_.accused.size() < kMaxWorkers && roster_.Find(message.suspect) != nullptr) {
    current_.accused.push_back({worker.id(), message.suspect, message.while_forming});
  }
  if (phase_ == Phase::kFinishing) {
    // Nothing steps any more and the last save needs no communicator: this one lacks the last step, no more.
    return SendVerdict(worker, "the others stand at the last step");
  }
  const Worker* suspect = roster_.Find(message.suspect);
  if (phase_ == Phase::kForming && current_.restores && message.damaged) {
    current_.restore_failure = absl::StrCat(worker.name(), ": ", message.message);
  }
  const bool other = suspect != nullptr && suspect != &worker;
  Break(absl::StrCat(worker.name(), other ? absl::StrCat(" lost ", suspect->name()) : "", ": ", message.message));
}

void Coordinator::OnMessage(Worker& worker, const StoreSet& message) {
  if (!InCurrent(worker, message.generation)) return;
  if (message.value.size() > kMaxStoreValueBytes || message.key.size() > kMaxStoreValueBytes) {
    return Break(absl::StrCat(worker.name(), " put ", message.value.size(), " bytes under '", message.key.substr(0, 64),
                              "' into the store; at most ", kMaxStoreValueBytes, " are accepted"));
  }
  std::vector<Worker*> others;
  for (const Member& member : current_.members) {
    Worker* other = roster_.Find(member.incarnation);
    if (other != nullptr && other->id() != worker.id() && other->busy == current_.id) others.push_back(other);
  }
  out_.CommandAll(others, current_.id, StorePush{message.key, message.value}, "rendezvous");
}

void Coordinator::OnMessage(Worker& worker, const CommandRejected& message) {
  out_.Say(Level::kWarning, absl::StrCat(worker.name(), " rejected ", message.command, ": ", message.reason));
  const Generation believed = worker.busy;
  if (!worker.AtRest() && believed == current_.id && message.generation != believed) {
    // It does not run what this chief believes: that generation lacks a member.
    Break(absl::StrCat(worker.name(), " does not run generation ", believed.ToString()));
  }
  // This chief is wrong about the worker. In a new session, a second later, the worker says what it runs and holds.
  static const std::set<std::string>* const kAwaited = new std::set<std::string>(
      {Form::kTypeName, MakePlan::kTypeName, Prepare::kTypeName, TakeSnapshot::kTypeName, Dismiss::kTypeName});
  if (kAwaited->count(message.command) != 0) {
    over_ = std::max(over_, worker.busy);
    Lose(worker.id(), WorkerChange::kLost, absl::StrCat("it rejected ", message.command), /*close=*/true);
  }
}

}  // namespace lockstep::chief
