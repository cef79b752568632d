// Decides which generation goes on: the only part that knows whether members step, in which generation, and how it ends
// (rules 4, 8, 10, 14).
//
//   1 Adopting ──▶ 2 Waiting ──▶ 3 Forming ──▶ 4 Running ──▶ 6 Finishing ──▶ 7 Done ──▶ 8 Ended
//       │             ▲              │   evidence  │                │
//       │             └── 5 Breaking ◀─────────────┴────────────────┘ (the last snapshot's holders are lost)
//       └── the running generation is complete ──▶ 4, else ──▶ 5
//
//   1  a restarted chief listens for members of a generation that still runs (rule 14). 2 and 4 go back to 1 if this
//      chief was paused or cut off and cannot know whether its members step on (ListenAgain)
//   2  nobody steps: the kernel plan is made, workers prepare, the job is parked below its minimum, states of leaving
//      workers are saved
//   3  Form is sent; members connect and synchronise
//   4  members step on their own; boundaries are requested, reports come in
//   5  verdicts are sent or members meet at a boundary; they answer with the states that they hold
//   6  members stand at the last boundary; their snapshot is being saved
//   7  members are told; reached from every phase, once the state that ends the job is published
//
// Three marks order all generations, by number:
//   newest   the newest generation that this chief formed or adopted; no older one goes on
//   over     no generation up to this one goes on: a member left it, or was told that it is over
//   parted   a repair gave up what generations up to this one computed: their states no longer count
//
// The reasons of a break are weighed once all members are at rest or given up (break_finding.h). FormationBackoff
// decides when to form again.
//
// Invariants (BrokenInvariant)
//   * At most one generation of a term goes on at a time: the current one is the newest.
//   * Members of 4 have all synchronised; of 3, 4 and 6 there is a current generation.
//   * A generation that breaks stays in 5 until its break is concluded.
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
    std::set<Incarnation> ids;    // of `members`
    Position begin;
    std::set<Incarnation> formed;
    bool restores = false;  // from the checkpoint
    uint64_t agreed = 0;    // the agreed step when it was formed
    bool Has(const Incarnation& incarnation) const { return ids.count(incarnation) != 0; }
    std::vector<Incarnation> Ids() const;  // by rank
  };
  // A running generation that this chief takes over.
  struct Adoption {
    Lineage lineage;
    std::map<Incarnation, Position> positions;  // of its members
  };
  // Restores failed several times in a row although no member was lost.
  struct FailedRestores {
    uint32_t in_a_row = 0;
    std::string failure;  // the newest one
  };
  static constexpr uint32_t kFailedRestoresBeforeEnd = 3;
  static constexpr absl::Duration kNoticed = absl::Seconds(7);  // after so long an absence workers may have left

  // ---- queries
  Phase phase() const { return phase_; }
  bool Is(Phase phase) const { return phase_ == phase; }
  absl::Time phase_since() const { return phase_since_; }
  // When time alone ends Adopting or Breaking.
  absl::Time deadline() const {
    return Is(Phase::kAdopting) || Is(Phase::kBreaking) ? deadline_ : absl::InfiniteFuture();
  }
  const Current& current() const { return current_; }
  const FormationBackoff& backoff() const { return backoff_; }
  uint64_t final_step() const { return final_step_; }  // the step that Finishing saves
  // Whether this chief has neither adopted nor formed a generation.
  bool IsFirst() const { return newest_.IsNone(); }
  bool HasFormed() const { return generations_ != 0; }
  // Whether this generation can no longer go on, whichever members come back.
  bool IsOver(const Generation& generation) const { return generation <= over_ || generation < newest_; }
  bool IsParted(const Generation& generation) const { return generation <= parted_; }
  // Whether the worker runs the current generation, as far as is known.
  bool Runs(const Worker& worker) const { return !worker.AtRest() && worker.busy == current_.id; }
  // Whether the worker runs the current generation and is one of its members.
  bool IsMember(const Worker& worker) const { return Runs(worker) && current_.Has(worker.id()); }
  bool AnyMember(Roster& roster, const std::function<bool(const Worker&)>& is) const;
  bool HasRequested(RequestKind kind) const { return evidence_.requested.count(kind) != 0; }

  // ---- time
  void Begin(absl::Time now, Term term, const JobPolicy& policy) {
    phase_since_ = now;
    // A first chief has no predecessor whose generation could still run.
    deadline_ = term == 1 ? now : now + policy.heartbeat_limit;
  }
  // This process was paused for `gap`.
  void WasAway(absl::Duration gap, absl::Time now, const JobPolicy& policy);
  // A member was silent for too long. If the generation has several members and none was heard, this chief is the one
  // that is cut off.
  void NoteSilence(const CoreContext& context);

  // ---- adopting
  // A worker says Hello. One at rest says what it holds. One that runs a generation either goes on, or is told that the
  // generation is over. Returns the other workers whose fellow members this Hello names.
  std::vector<Worker*> TakeIn(const CoreContext& context, Worker& worker, const Hello& hello,
                              const ProgressTracker& progress);
  // The worker reports to a chief that listens: moves its claim to `position`, also if it had no state yet at its
  // Hello. Returns false if it claims no such generation.
  bool Moved(Worker& worker, const Generation& generation, const Lineage& lineage, const Position& position) const {
    if (worker.AtRest() || worker.busy != generation) return false;
    if (!worker.claimed.has_value()) worker.claimed = HeldState{lineage, position, Digest()};
    worker.claimed->position = position;
    return true;
  }
  // Adopts a generation whose members are all back, or ends the claims that cannot be met. `published`: the lineage of
  // the newest checkpoint.
  std::optional<Adoption> AdvanceAdopting(const CoreContext& context, const Lineage& published);
  // Ends the generations of all workers that run one: none is adopted.
  void EndClaims(const CoreContext& context, const std::string& reason);

  // ---- forming
  Generation NextId(Term term) const { return Generation{term, generations_ + 1}; }
  // Call before another generation is formed from a checkpoint. Returns a value if too many restores in a row failed.
  std::optional<FailedRestores> CountFailedRestore(Roster& roster);
  // Sends `form` to `members`. `agreed`: the step that all had applied before. Returns those that are members for the
  // first time.
  std::vector<Worker*> SendForm(const CoreContext& context, const Form& form, const std::vector<Worker*>& members,
                                uint64_t agreed);
  // A member synchronised at `position`. Returns why the generation breaks; empty if it does not.
  std::string Formed(const Worker& worker, const Position& position);
  // Returns true once all members have synchronised.
  bool AdvanceForming(const CoreContext& context);
  // Ends the pause after a break, on behalf of the first of `members` that was not in the broken generation. Returns
  // false if there is none.
  bool EndPauseFor(const std::vector<Worker*>& members, absl::Time now);

  // ---- running
  // Whether `generation`, named by a message of `worker`, is the one that this chief takes for running. If it is not,
  // the worker is told that it is over (rule 10).
  bool InCurrent(const CoreContext& context, Worker& worker, const Generation& generation);
  // Asks the members for a boundary of this kind, unless a request of it is pending.
  void Request(const CoreContext& context, RequestKind kind, const std::string& reason);
  void RequestServed(RequestKind kind) { evidence_.requested.erase(kind); }
  // Forwards an entry of the rendezvous store from one member to the others. Returns why the generation breaks; empty
  // if it does not.
  std::string Relay(const CoreContext& context, const Worker& worker, const StoreSet& message);
  // A worker of `generation` took the last snapshot, of this step: its members stand at the last boundary from then on.
  // A chief that still listens takes it as part of the worker's claim.
  void Finished(Worker& worker, const Generation& generation, uint64_t step);
  void EnterFinishing(uint64_t step) {
    final_step_ = step;
    phase_ = Phase::kFinishing;
  }

  // ---- ending
  // The members meet at `position`, according to the first of them. Returns false if the generation was ending already.
  bool MeetAt(const CoreContext& context, const Position& position);
  // A member names a peer, or itself, as the cause of its failure. Returns why the generation breaks; empty if it does
  // not.
  std::string Accuse(const CoreContext& context, Worker& worker, const PeerFailed& message);
  // Breaks the current generation; does nothing if none is left to break. `agreed`: the step that all have applied.
  void Break(const CoreContext& context, const std::string& reason, uint64_t agreed);
  void SendVerdict(const CoreContext& context, Worker& worker, const std::string& reason);
  // The worker acknowledged the end of `last`.
  void Rest(Worker& worker, const Generation& last, std::optional<HeldState> held);
  // A worker at rest replaced its state by `held`.
  static void TookUp(Worker& worker, HeldState held) { worker.held = std::move(held); }
  // No worker goes on with this generation or an older one.
  void GiveUp(const Generation& generation) { over_ = std::max(over_, generation); }
  // No state that any generation computed so far counts any more.
  void Part() { parted_ = over_ = std::max(over_, newest_); }
  // A worker left the roster. Returns whether it was ever a member under this chief.
  bool Forget(const Incarnation& incarnation, const std::string& name, absl::Time now) {
    if (current_.Has(incarnation)) backoff_.EndEarly(name, now);
    return joined_.erase(incarnation) != 0;
  }
  // A worker that had been a member is lost.
  void MemberLost(const CoreContext& context, const std::string& name, const std::string& reason,
                  const ProgressTracker& progress);
  // Whether the loss of a worker of this name broke the newest generation. Clears the mark: a second call returns
  // false.
  bool WasBrokenBy(const std::string& name) { return broke_by_.erase(name) != 0; }
  // Returns the finding of the break once every member is at rest or given up; the phase is then Waiting.
  std::optional<BreakFinding> AdvanceBreaking(const CoreContext& context, uint64_t agreed);
  void Done() { phase_ = Phase::kDone; }
  void End() { phase_ = Phase::kEnded; }

  std::string BrokenInvariant() const;

 private:
  // Facts about the current generation that no other part sees.
  struct Evidence {
    bool broken = false;          // it was broken by evidence, not ended at a boundary
    std::string restore_failure;  // the newest report that its restore failed; empty: none
    std::vector<Accusation> accused;
    std::set<RequestKind> requested;
  };

  void Enter(Phase phase, absl::Time now);
  // Makes `id` the current generation; none if `id` is none.
  void Replace(const Generation& id);
  void Add(const Member& member) {
    current_.members.push_back(member);
    current_.ids.insert(member.incarnation);
  }
  Adoption Adopt(const CoreContext& context, const Worker& witness);
  // Whether the generation of this Hello may still become complete and go on.
  bool MayGoOn(const Hello& hello, const Roster& roster) const;
  // This chief was paused or cut off, and a member's session ended: the apparent death may only be the chief's own
  // absence. It listens for the running generation as a restarted chief does.
  void ListenAgain(const CoreContext& context, const std::string& reason, const ProgressTracker& progress);
  BreakFinding Conclude(const CoreContext& context, uint64_t agreed);
  std::vector<Worker*> MembersHere(Roster& roster) const;

  Phase phase_ = Phase::kAdopting;
  absl::Time phase_since_;
  absl::Time deadline_ = absl::InfiniteFuture();  // of Adopting and Breaking
  absl::Time away_until_ = absl::InfinitePast();  // the end of a session before then says nothing about its worker
  MemberClaims claims_;

  Current current_;
  Evidence evidence_;
  Generation newest_;
  Generation heard_;  // the newest generation that was claimed since this chief listens
  Generation over_;
  Generation parted_;
  uint64_t generations_ = 0;
  uint64_t requests_ = 0;
  uint32_t failed_restores_ = 0;    // in a row, with no member lost
  std::set<Incarnation> joined_;    // workers that were in a generation of this chief
  std::set<std::string> broke_by_;  // names whose loss broke the newest generation
  uint64_t final_step_ = 0;
  FormationBackoff backoff_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_GENERATION_LIFE_H_
