// Which generation goes on: the one machine that knows whether members step, of which generation, and how it ends
// (rules 4, 8, 10, 14).
//
//   1 Adopting ──▶ 2 Waiting ──▶ 3 Forming ──▶ 4 Running ──▶ 6 Finishing ──▶ 7 Done ──▶ 8 Ended
//       │             ▲              │   evidence  │                │
//       │             └── 5 Breaking ◀─────────────┴────────────────┘ (the last snapshot's holders are lost)
//       └── the running generation is complete ──▶ 4, else ──▶ 5
//
//   1  a restarted chief listens for members of a generation that still runs (rule 14). 2 and 4 go back to 1 when this
//      chief was away, and cannot know whether its members step on (ListenAgain)
//   2  nobody steps: the kernel plan is made, workers prepare, the job is parked below its minimum, leavers are saved
//   3  Form is sent; members connect and synchronise
//   4  members step on their own; requests for boundaries go out, reports come in
//   5  verdicts are sent or a boundary is met; members answer with what they hold
//   6  members stand at the last boundary; their snapshot is being saved
//   7  members are told; from every phase, once what ends the job is published
//
// Three marks order all generations, by number:
//   newest   that was formed or adopted here; nobody goes on with an older one
//   over     nobody goes on with it, or with an older one: a member left it, or was told that it is over
//   parted   it computed what a repair gave up: its states count no more
//
// A break has reasons, which are weighed when all members are at rest or given up: break_finding.h. When to form again
// is weighed here too (FormationBackoff).
//
// Invariants (BrokenInvariant)
//   * At most one generation of a term goes on at a time: the current one is the newest.
//   * Members of 4 have all synchronised; of 3, 4 and 6 there is a current generation.
//   * Whoever breaks is in 5 until the break was concluded.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_GENERATION_LIFE_H_
#define LOCKSTEP_CHIEF_CORE_GENERATION_LIFE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/break_finding.h"
#include "chief/core/coordinator_view.h"
#include "chief/core/core_context.h"
#include "chief/core/formation_backoff.h"
#include "chief/core/member_claims.h"
#include "chief/core/progress_tracker.h"
#include "chief/core/roster.h"
#include "chief/core/running_claims.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class GenerationLife {
 public:
  // The newest generation of this chief, or the adopted one.
  struct Current {
    Generation id;
    std::vector<Member> members;  // by rank
    std::set<Incarnation> ids;    // of them
    Position begin;
    std::set<Incarnation> formed;
    bool restores = false;  // from the checkpoint
    uint64_t agreed = 0;    // when it was formed
    bool Has(const Incarnation& incarnation) const { return ids.count(incarnation) != 0; }
    std::vector<Incarnation> Ids() const;  // by rank
  };
  // A generation that goes on under this chief.
  struct Adoption {
    Lineage lineage;
    std::map<Incarnation, Position> positions;  // of its members
  };
  // Restores fail again and again although nobody is lost.
  struct FailedRestores {
    uint32_t in_a_row = 0;
    std::string failure;  // the newest one
  };
  static constexpr uint32_t kFailedRestoresBeforeEnd = 3;
  static constexpr absl::Duration kNoticed = absl::Seconds(7);  // an absence that workers may have noticed

  // ---- what is known
  Phase phase() const { return phase_; }
  bool Is(Phase phase) const { return phase_ == phase; }
  absl::Time phase_since() const { return phase_since_; }
  // When time alone ends Adopting or Breaking.
  absl::Time deadline() const {
    return Is(Phase::kAdopting) || Is(Phase::kBreaking) ? deadline_ : absl::InfiniteFuture();
  }
  const Current& current() const { return current_; }
  const FormationBackoff& backoff() const { return backoff_; }
  uint64_t final_step() const { return final_step_; }  // that Finishing saves
  // Whether this chief has neither adopted nor formed a generation.
  bool IsFirst() const { return newest_.IsNone(); }
  bool HasFormed() const { return generations_ != 0; }
  // Whether this generation cannot go on, whoever comes back.
  bool IsOver(const Generation& generation) const { return generation <= over_ || generation < newest_; }
  bool IsParted(const Generation& generation) const { return generation <= parted_; }
  // Whether it runs the current generation, as far as is known …
  bool Runs(const Worker& worker) const { return !worker.AtRest() && worker.busy == current_.id; }
  // … and is one of its members.
  bool IsMember(const Worker& worker) const { return Runs(worker) && current_.Has(worker.id()); }
  bool AnyMember(Roster& roster, const std::function<bool(const Worker&)>& is) const;
  bool HasRequested(RequestKind kind) const { return evidence_.requested.count(kind) != 0; }

  // ---- time
  void Begin(absl::Time now, Term term, const JobPolicy& policy) {
    phase_since_ = now;
    // A first chief has no predecessor whose generation could still run.
    deadline_ = term == 1 ? now : now + policy.heartbeat_limit;
  }
  // This process did not run for so long.
  void WasAway(absl::Duration gap, absl::Time now, const JobPolicy& policy);
  // A member was not heard for long. Several members, and none of them was: this chief is cut off.
  void NoteSilence(const CoreContext& context);

  // ---- adopting
  // A worker says Hello: what it holds at rest; or what it runs, which goes on, or it is told that it is over. Returns
  // the others whose fellow members it names.
  std::vector<Worker*> TakeIn(const CoreContext& context, Worker& worker, const Hello& hello,
                              const ProgressTracker& progress);
  // It reports to a chief that listens: its claim is at `position` by now, also of one that had no state yet when it
  // said Hello. False: it claims no such generation.
  bool Moved(Worker& worker, const Generation& generation, const Lineage& lineage, const Position& position) const {
    if (worker.AtRest() || worker.busy != generation) return false;
    if (!worker.claimed.has_value()) worker.claimed = HeldState{lineage, position, Digest()};
    worker.claimed->position = position;
    return true;
  }
  // `published`: the lineage of the newest checkpoint.
  std::optional<Adoption> AdvanceAdopting(const CoreContext& context, const Lineage& published);
  // Whoever runs a generation is to end it: none is adopted.
  void EndClaims(const CoreContext& context, const std::string& reason);

  // ---- forming
  Generation NextId(Term term) const { return Generation{term, generations_ + 1}; }
  // Before another generation is formed from a checkpoint: too many such ones in a row failed.
  std::optional<FailedRestores> CountFailedRestore(Roster& roster);
  // Sends `form` to its members. `agreed`: by all, so far. Returns those that are members for the first time.
  std::vector<Worker*> SendForm(const CoreContext& context, const Form& form, const std::vector<Worker*>& members,
                                uint64_t agreed);
  // A member synchronised. Returns why the generation breaks; empty: it does not.
  std::string Formed(const Worker& worker, const Position& position);
  // True when all have.
  bool AdvanceForming(const CoreContext& context);
  // Ends the pause after a break for the first of them that was not in the generation that broke. False: none did.
  bool EndPauseFor(const std::vector<Worker*>& members, absl::Time now);

  // ---- running
  // True when `worker` speaks of the generation that this chief holds for running. A worker that speaks of another one
  // is told that it is over (rule 10).
  bool InCurrent(const CoreContext& context, Worker& worker, const Generation& generation);
  // Once for each kind, until it was served.
  void Request(const CoreContext& context, RequestKind kind, const std::string& reason);
  void RequestServed(RequestKind kind) { evidence_.requested.erase(kind); }
  // Gives what a member puts into the store to the others. Returns why the generation breaks; empty: it does not.
  std::string Relay(const CoreContext& context, const Worker& worker, const StoreSet& message);
  // A worker of `generation` took the last snapshot, of this step: members stand at the last boundary from then on. To
  // a chief that still listens it is as if its Hello had said so.
  void Finished(Worker& worker, const Generation& generation, uint64_t step);
  void EnterFinishing(uint64_t step) {
    final_step_ = step;
    phase_ = Phase::kFinishing;
  }

  // ---- ending
  // The members meet at `position`, as the first of them says. False: they were ending already.
  bool MeetAt(const CoreContext& context, const Position& position);
  // A member names what keeps it from going on. Returns why the generation breaks; empty: it does not.
  std::string Accuse(const CoreContext& context, Worker& worker, const PeerFailed& message);
  // On evidence; where nothing is left to break, nothing happens. `agreed`: the step that all have applied.
  void Break(const CoreContext& context, const std::string& reason, uint64_t agreed);
  void SendVerdict(const CoreContext& context, Worker& worker, const std::string& reason);
  // The worker acknowledged the end of `last`.
  void Rest(Worker& worker, const Generation& last, std::optional<HeldState> held);
  // A worker at rest holds another state than it had when it came to rest.
  static void TookUp(Worker& worker, HeldState held) { worker.held = std::move(held); }
  // Nobody goes on with this generation, or an older one.
  void GiveUp(const Generation& generation) { over_ = std::max(over_, generation); }
  // No state of what went on so far counts any more.
  void Part() { parted_ = over_ = std::max(over_, newest_); }
  // A worker left the roster. True: it was a member of some generation of this chief.
  bool Forget(const Incarnation& incarnation, const std::string& name, absl::Time now) {
    if (current_.Has(incarnation)) backoff_.EndEarly(name, now);
    return joined_.erase(incarnation) != 0;
  }
  // It was a member.
  void MemberLost(const CoreContext& context, const std::string& name, const std::string& reason,
                  const ProgressTracker& progress);
  // Whether the loss of a worker of this name broke the newest generation; asked once.
  bool WasBrokenBy(const std::string& name) { return broke_by_.erase(name) != 0; }
  // What the break says, when every member is at rest or given up; the phase is Waiting then.
  std::optional<BreakFinding> AdvanceBreaking(const CoreContext& context, uint64_t agreed);
  void Done() { phase_ = Phase::kDone; }
  void End() { phase_ = Phase::kEnded; }

  std::string BrokenInvariant() const;

 private:
  // Of the current generation, what is nobody else's to see.
  struct Evidence {
    bool broken = false;          // not met at a boundary
    std::string restore_failure;  // what a member said of it; empty while nobody did
    std::vector<Accusation> accused;
    std::set<RequestKind> requested;
  };

  void Enter(Phase phase, absl::Time now);
  // Another generation is the current one, or none is.
  void Replace(const Generation& id);
  void Add(const Member& member) {
    current_.members.push_back(member);
    current_.ids.insert(member.incarnation);
  }
  Adoption Adopt(const CoreContext& context, const Worker& witness);
  // Whether the generation of this Hello may still be complete, and go on.
  bool MayGoOn(const Hello& hello, const Roster& roster) const;
  // This chief was paused or cut off, and lost a member's session: what it takes for a death may be its own absence. It
  // listens for the running generation as a restarted chief does.
  void ListenAgain(const CoreContext& context, const std::string& reason, const ProgressTracker& progress);
  BreakFinding Conclude(const CoreContext& context, uint64_t agreed);
  std::vector<Worker*> MembersHere(Roster& roster) const;

  Phase phase_ = Phase::kAdopting;
  absl::Time phase_since_;
  absl::Time deadline_ = absl::InfiniteFuture();  // of Adopting and Breaking
  absl::Time away_until_ = absl::InfinitePast();  // sessions that end before then say nothing of their workers
  MemberClaims claims_;

  Current current_;
  Evidence evidence_;
  Generation newest_;
  Generation heard_;  // the newest one that this chief listens for since it listens
  Generation over_;
  Generation parted_;
  uint64_t generations_ = 0;
  uint64_t requests_ = 0;
  uint32_t failed_restores_ = 0;    // in a row, every member having lived on
  std::set<Incarnation> joined_;    // were in a generation of this chief
  std::set<std::string> broke_by_;  // names whose loss broke the newest generation
  uint64_t final_step_ = 0;
  FormationBackoff backoff_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_GENERATION_LIFE_H_
