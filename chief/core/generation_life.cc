#include "chief/core/generation_life.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {

std::vector<Incarnation> GenerationLife::Current::Ids() const {
  std::vector<Incarnation> list;
  for (const Member& member : members) list.push_back(member.incarnation);
  return list;
}

std::vector<Worker*> GenerationLife::MembersHere(Roster& roster) const {
  std::vector<Worker*> here;
  for (const Member& member : current_.members) {
    if (Worker* worker = roster.Find(member.incarnation)) here.push_back(worker);
  }
  return here;
}

bool GenerationLife::AnyMember(Roster& roster, const std::function<bool(const Worker&)>& is) const {
  return std::any_of(current_.members.begin(), current_.members.end(), [&](const Member& member) {
    const Worker* worker = roster.Find(member.incarnation);
    return worker != nullptr && is(*worker);
  });
}

void GenerationLife::Enter(Phase phase, absl::Time now) {
  phase_ = phase;
  phase_since_ = now;
}

void GenerationLife::Replace(const Generation& id) {
  current_ = Current();
  current_.id = id;
  evidence_ = Evidence();
}

// ---- time

void GenerationLife::WasAway(absl::Duration gap, absl::Time now, const JobPolicy& policy) {
  if (gap >= std::min(policy.heartbeat_limit, kNoticed)) away_until_ = now + policy.heartbeat_limit;
  phase_since_ += gap;
  deadline_ += gap;
  backoff_.ShiftDeadlines(gap);
}

void GenerationLife::NoteSilence(const CoreContext& context) {
  if (current_.members.size() <= 1) return;
  const absl::Time heard_since = context.now - context.policy.heartbeat_limit / 2;
  const auto heard = [&](const Worker& worker) { return worker.heard >= heard_since; };
  if (!AnyMember(context.roster, heard)) away_until_ = context.now + context.policy.heartbeat_limit;
}

// ---- adopting

std::vector<Worker*> GenerationLife::TakeIn(const CoreContext& context, Worker& worker, const Hello& hello,
                                            const ProgressTracker& progress) {
  std::optional<HeldState> state;
  if (hello.has_state) state = HeldState{hello.lineage, hello.position, Digest()};
  if (hello.activity == Activity::kIdle) {
    worker.held = std::move(state);
    return {};
  }
  const bool finishes = Is(Phase::kFinishing) && hello.activity == Activity::kFinished;
  const bool goes_on = MayGoOn(hello, context.roster) || finishes;
  if (goes_on && Is(Phase::kWaiting)) ListenAgain(context, absl::StrCat(worker.name(), " came back"), progress);
  if (goes_on) heard_ = std::max(heard_, hello.generation);
  worker.busy = hello.generation;
  worker.claimed = std::move(state);
  std::vector<Worker*> named = claims_.Take(hello, worker, context.roster);
  worker.finished = hello.activity == Activity::kFinished;
  if (!goes_on) SendVerdict(context, worker, "its generation ended when its session did");
  return named;
}

bool GenerationLife::MayGoOn(const Hello& hello, const Roster& roster) const {
  if (IsOver(hello.generation)) return false;
  if (Is(Phase::kAdopting)) return true;
  const std::vector<Worker*> workers = roster.InOrder();
  return Is(Phase::kWaiting) && hello.activity == Activity::kRunning &&
         std::all_of(workers.begin(), workers.end(), [](const Worker* worker) { return worker->AtRest(); });
}

void GenerationLife::ListenAgain(const CoreContext& context, const std::string& reason,
                                 const ProgressTracker& progress) {
  context.out.Say(Level::kWarning,
                  absl::StrCat(reason, ": members may step on without this chief; it listens for them"));
  std::vector<Worker*> here;
  for (Worker* worker : context.roster.InOrder()) {
    if (!Runs(*worker)) continue;
    here.push_back(worker);
    worker->claimed = HeldState{context.history.lineage(), progress.AppliedBy(worker->id()), Digest()};
  }
  claims_.Give(current_.id, current_.members, here);
  Replace(Generation());
  heard_ = Generation();
  Enter(Phase::kAdopting, context.now);
  deadline_ = context.now + context.policy.heartbeat_limit;
}

std::optional<GenerationLife::Adoption> GenerationLife::AdvanceAdopting(const CoreContext& context,
                                                                        const Lineage& published) {
  bool newest_is_over = false;
  std::map<Generation, bool> may_be_complete;  // its members all claim the same
  for (Worker* worker : context.roster.InOrder()) {
    if (worker->AtRest()) continue;
    const auto [judged, first] = may_be_complete.try_emplace(worker->busy, true);
    if (first) {
      if (!IsOver(worker->busy) && ClaimComplete(context, *worker, published)) return Adopt(context, *worker);
      judged->second = !IsOver(worker->busy) && !ClaimImpossible(context, *worker);
    }
    if (judged->second) continue;
    // Only this generation: members of a newer one may still come.
    newest_is_over = newest_is_over || worker->busy == newest_;
    SendVerdict(context, *worker, "a member of its generation runs it no more");
  }
  // A worker that still runs a generation runs it without some of its members.
  const bool late = context.Passed(deadline_);
  // Also where nobody of it is here now: else a session that comes and goes keeps this chief listening for ever.
  if (late) GiveUp(heard_);
  if (newest_is_over || late) {
    EndClaims(context, "not all members of its generation came back to the new chief");
  }
  return std::nullopt;
}

void GenerationLife::EndClaims(const CoreContext& context, const std::string& reason) {
  Enter(Phase::kBreaking, context.now);
  deadline_ = context.now + AckWindow(context);
  for (Worker* worker : context.roster.InOrder()) {
    if (!worker->AtRest()) SendVerdict(context, *worker, reason);
  }
}

GenerationLife::Adoption GenerationLife::Adopt(const CoreContext& context, const Worker& witness) {
  Replace(witness.busy);
  newest_ = witness.busy;
  Adoption adoption{witness.claimed->lineage, {}};
  bool finished = false;
  for (const Member& member : *witness.claims) {
    Worker& worker = *context.roster.Find(member.incarnation);
    Add(worker.member);
    current_.formed.insert(worker.id());
    if (current_.id.term == context.term && joined_.insert(worker.id()).second) {
      context.out.Add(
          WorkerChanged{worker.name(), worker.id(), WorkerChange::kJoined, "it stepped on without this chief"});
    }
    current_.begin = std::max(current_.begin, worker.claimed->position);
    adoption.positions[worker.id()] = worker.claimed->position;
    if (worker.finished) {
      finished = true;
      final_step_ = worker.claimed->position.step;
    }
  }
  for (Worker* worker : context.roster.InOrder()) {
    if (!worker->AtRest() && !current_.Has(worker->id()))
      SendVerdict(context, *worker, "another generation was adopted");
  }
  Enter(finished ? Phase::kFinishing : Phase::kRunning, context.now);
  context.out.Say(Level::kInfo,
                  absl::StrCat("generation ", current_.id.ToString(), " goes on under term ", context.term, ", ",
                               current_.members.size(), " members, ", current_.begin.ToString()));
  return adoption;
}

// ---- forming, running

std::optional<GenerationLife::FailedRestores> GenerationLife::CountFailedRestore(Roster& roster) {
  std::string failure = std::exchange(evidence_.restore_failure, "");
  if (failure.empty()) return std::nullopt;
  // Who died while it restored has left the roster by now: a loss says nothing about the files, for or against.
  const bool all_live = MembersHere(roster).size() == current_.members.size();
  if (all_live) ++failed_restores_;
  if (failed_restores_ < kFailedRestoresBeforeEnd) return std::nullopt;
  return FailedRestores{failed_restores_, std::move(failure)};
}

std::vector<Worker*> GenerationLife::SendForm(const CoreContext& context, const Form& form,
                                              const std::vector<Worker*>& members, uint64_t agreed) {
  Replace(NextId(context.term));
  ++generations_;
  newest_ = current_.id;
  current_.begin = form.position;
  current_.agreed = agreed;
  current_.restores = form.restore.has_value();
  std::vector<Worker*> first_time;
  std::vector<std::string> names;
  for (Worker* worker : members) {
    Add(worker->member);
    names.push_back(worker->name());
    worker->busy = current_.id;
    worker->held.reset();
    worker->verdict_sent = worker->finished = false;
    if (!joined_.insert(worker->id()).second) continue;
    first_time.push_back(worker);
    context.out.Add(WorkerChanged{worker->name(), worker->id(), WorkerChange::kJoined,
                                  absl::StrCat("generation ", current_.id.ToString())});
  }
  context.out.CommandAll(members, current_.id, form, form.reason);
  broke_by_.clear();
  Enter(Phase::kForming, context.now);
  context.out.Say(Level::kInfo, absl::StrCat("generation ", current_.id.ToString(), ": ", absl::StrJoin(names, ", "),
                                             " at ", form.position.ToString(), ", ", form.reason));
  return first_time;
}

std::string GenerationLife::Formed(const Worker& worker, const Position& position) {
  if (!Is(Phase::kForming)) return "";
  if (position != current_.begin) {
    return absl::StrCat(worker.name(), " stands at ", position.ToString(), " instead of ", current_.begin.ToString());
  }
  current_.formed.insert(worker.id());
  return "";
}

bool GenerationLife::AdvanceForming(const CoreContext& context) {
  if (current_.formed.size() < current_.members.size()) return false;
  Enter(Phase::kRunning, context.now);
  failed_restores_ = 0;
  context.out.Say(Level::kInfo, absl::StrCat("generation ", current_.id.ToString(), " steps from ",
                                             current_.begin.ToString(), ", ", current_.members.size(), " workers"));
  return true;
}

bool GenerationLife::EndPauseFor(const std::vector<Worker*>& members, absl::Time now) {
  return std::any_of(members.begin(), members.end(), [&](const Worker* worker) {
    return !current_.Has(worker->id()) && backoff_.EndEarly(worker->name(), now);
  });
}

bool GenerationLife::InCurrent(const CoreContext& context, Worker& worker, const Generation& generation) {
  if (worker.AtRest() || worker.busy != generation) return false;  // crossed with its own acknowledgement
  if (IsMember(worker)) return true;
  SendVerdict(context, worker, absl::StrCat("generation ", generation.ToString(), " is over"));
  return false;
}

void GenerationLife::Request(const CoreContext& context, RequestKind kind, const std::string& reason) {
  if (!evidence_.requested.insert(kind).second) return;
  const uint64_t number = (context.term << 32) | ++requests_;
  context.out.CommandAll(MembersHere(context.roster), current_.id, BoundaryRequest{kind, number}, reason);
}

std::string GenerationLife::Relay(const CoreContext& context, const Worker& worker, const StoreSet& message) {
  if (message.value.size() > kMaxStoreValueBytes || message.key.size() > kMaxStoreValueBytes) {
    return absl::StrCat(worker.name(), " put ", message.value.size(), " bytes under '", message.key.substr(0, 64),
                        "' into the store; at most ", kMaxStoreValueBytes, " are accepted");
  }
  std::vector<Worker*> others = MembersHere(context.roster);
  std::erase_if(others, [&](const Worker* other) { return other == &worker || !Runs(*other); });
  context.out.CommandAll(others, current_.id, StorePush{message.key, message.value}, "rendezvous");
  return "";
}

void GenerationLife::Finished(Worker& worker, const Generation& generation, uint64_t step) {
  if (Is(Phase::kAdopting) && generation == worker.busy && worker.claimed.has_value()) {
    worker.finished = true;
    worker.claimed->position = std::max(worker.claimed->position, Position{step, 0});
  }
  const bool steps = Is(Phase::kForming) || Is(Phase::kRunning) || Is(Phase::kFinishing);
  if (!steps || worker.AtRest() || generation != current_.id || !current_.Has(worker.id())) return;
  worker.finished = true;
  EnterFinishing(step);
}

// ---- ending

bool GenerationLife::MeetAt(const CoreContext& context, const Position& position) {
  if (!Is(Phase::kRunning) && !Is(Phase::kForming)) return false;
  Enter(Phase::kBreaking, context.now);
  deadline_ = context.now + AckWindow(context);  // the others have the same word and are at most an update behind
  context.out.Say(Level::kInfo, absl::StrCat("generation ", current_.id.ToString(), " meets at ", position.ToString()));
  return true;
}

std::string GenerationLife::Accuse(const CoreContext& context, Worker& worker, const PeerFailed& message) {
  const Worker* suspect = context.roster.Find(message.suspect);
  if (evidence_.accused.size() < kMaxWorkers && suspect != nullptr) {
    evidence_.accused.push_back({worker.id(), message.suspect, message.while_forming});
  }
  if (Is(Phase::kFinishing)) {
    // Nothing steps any more and the last save needs no communicator: this one lacks the last step, no more.
    SendVerdict(context, worker, "the others stand at the last step");
    return "";
  }
  // The word of damage may come behind that of a member which only lost its peer.
  const bool was_formed = current_.formed.size() == current_.ids.size();
  if (current_.restores && !was_formed && message.damaged) {
    evidence_.restore_failure = absl::StrCat(worker.name(), ": ", message.message);
  }
  const bool other = suspect != nullptr && suspect != &worker;
  return absl::StrCat(worker.name(), other ? absl::StrCat(" lost ", suspect->name()) : "", ": ", message.message);
}

void GenerationLife::SendVerdict(const CoreContext& context, Worker& worker, const std::string& reason) {
  if (worker.verdict_sent) return;
  worker.verdict_sent = true;
  GiveUp(worker.busy);
  context.out.Command(worker, worker.busy, Verdict{reason}, reason);
}

void GenerationLife::Break(const CoreContext& context, const std::string& reason, uint64_t agreed) {
  if (!Is(Phase::kForming) && !Is(Phase::kRunning) && !Is(Phase::kBreaking) && !Is(Phase::kFinishing)) return;
  if (!evidence_.broken) backoff_.Broke(reason);
  evidence_.broken = true;
  if (!Is(Phase::kBreaking)) {
    context.out.Say(Level::kWarning,
                    absl::StrCat("generation ", current_.id.ToString(), " ends after step ", agreed, ": ", reason));
  }
  EndClaims(context, reason);
}

void GenerationLife::Rest(Worker& worker, const Generation& last, std::optional<HeldState> held) {
  GiveUp(last);
  worker.busy = Generation();
  worker.verdict_sent = false;
  worker.finished = false;
  worker.claims.reset();
  worker.claim.clear();
  worker.claimed.reset();
  worker.last_generation = last;
  worker.held = std::move(held);
  worker.rest_asked.reset();
}

void GenerationLife::MemberLost(const CoreContext& context, const std::string& name, const std::string& reason,
                                const ProgressTracker& progress) {
  const std::string cause = absl::StrCat(name, ": ", reason);
  if (Is(Phase::kRunning) && context.now < away_until_ && !IsOver(current_.id)) {
    return ListenAgain(context, cause, progress);
  }
  if (Is(Phase::kForming) || Is(Phase::kRunning)) {
    broke_by_.insert(name);
    return Break(context, cause, progress.agreed());
  }
  if (!Is(Phase::kBreaking)) return;
  for (const Worker* other : context.roster.InOrder()) {
    // Members on their way to a boundary will not get there without the one that is lost.
    if (!other->AtRest() && !other->verdict_sent) return Break(context, cause, progress.agreed());
  }
}

std::optional<BreakFinding> GenerationLife::AdvanceBreaking(const CoreContext& context, uint64_t agreed) {
  std::vector<std::string> silent;
  bool all_told = true;
  for (const Worker* worker : context.roster.InOrder()) {
    if (worker->AtRest()) continue;
    silent.push_back(worker->name());
    all_told = all_told && worker->verdict_sent;
  }
  if (!silent.empty() && !context.Passed(deadline_)) return std::nullopt;
  const std::string names = absl::StrJoin(silent, ", ");
  if (!all_told) {
    Break(context, absl::StrCat(names, " did not come to the boundary in time"), agreed);
    return std::nullopt;
  }
  if (!silent.empty()) {
    context.out.Say(Level::kWarning,
                    absl::StrCat(names, " did not acknowledge the end of the generation; it joins a later one"));
  }
  Enter(Phase::kWaiting, context.now);
  return Conclude(context, agreed);
}

BreakFinding GenerationLife::Conclude(const CoreContext& context, uint64_t agreed) {
  if (!evidence_.broken) {  // met at a boundary: what failed before works now
    backoff_.Concluded(/*fruitless=*/false, context.now);
    return BreakFinding();
  }
  const bool lost = MembersHere(context.roster).size() != current_.members.size();
  const bool formed = current_.formed.size() == current_.members.size();
  BreakFinding finding = Weigh(evidence_.accused, context.roster, lost, formed);
  const bool stepped = agreed > current_.agreed;
  backoff_.Concluded(!stepped && !lost, context.now);
  evidence_.broken = false;
  evidence_.accused.clear();
  return finding;
}

std::string GenerationLife::BrokenInvariant() const {
  if (!current_.id.IsNone() && current_.id != newest_) {
    return absl::StrCat("generation ", current_.id.ToString(), " goes on beside ", newest_.ToString());
  }
  const bool lives = Is(Phase::kForming) || Is(Phase::kRunning) || Is(Phase::kFinishing);
  if (lives && current_.id.IsNone()) return "no generation goes on in a phase that has one";
  if (Is(Phase::kRunning) && current_.formed.size() != current_.ids.size()) {
    return absl::StrCat("generation ", current_.id.ToString(), " steps before all of its members synchronised");
  }
  if (evidence_.broken && (lives || Is(Phase::kWaiting) || Is(Phase::kAdopting))) {
    return absl::StrCat("the break of generation ", current_.id.ToString(), " was not concluded");
  }
  return "";
}

}  // namespace lockstep::chief
