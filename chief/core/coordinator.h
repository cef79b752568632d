// Decides what the job does next. No sockets, threads, files, clock, randomness or logging: the same events at the same
// instants give the same actions.
//
//   1 Adopting ──▶ 2 Waiting ──▶ 3 Forming ──▶ 4 Running ──▶ 6 Finishing ──▶ 7 Done ──▶ 8 Ended
//       │             ▲              │   evidence  │                │
//       │             └── 5 Breaking ◀─────────────┴────────────────┘ (the last snapshot's holders are lost)
//       └── the running generation is complete ──▶ 4, else ──▶ 5
//
//   1  a restarted chief listens for members of a generation that still runs (rule 14)
//   2  nobody steps: the kernel plan is made, workers prepare, the job is parked below its minimum, leavers are saved
//   3  Form is sent; members connect and synchronise
//   4  members step on their own; requests for boundaries go out, reports come in
//   5  verdicts are sent or a boundary is met; members answer with what they hold
//   6  members stand at the last boundary; their snapshot is being saved
//   7  members are told
//
// Invariants
//   * At most one generation of a term steps at a time; only the newest term commits.
//   * A generation is formed from the highest position that a worker at rest acknowledged, never from a report or a
//     heartbeat; from the storage only when no worker that is connected holds or may hold anything newer.
//   * Nothing steps below the minimum of workers.
//   * PublishCommit{s} is emitted only after ManifestStored{s} came in (checkpoint_tracker.h).
// Threading: thread-compatible; ChiefLoop owns the only instance.
#ifndef LOCKSTEP_CHIEF_CORE_COORDINATOR_H_
#define LOCKSTEP_CHIEF_CORE_COORDINATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/audit.h"
#include "chief/core/audit_repair.h"
#include "chief/core/checkpoint_tracker.h"
#include "chief/core/coordinator_view.h"
#include "chief/core/departures.h"
#include "chief/core/drains.h"
#include "chief/core/events.h"
#include "chief/core/failure_budget.h"
#include "chief/core/formation_backoff.h"
#include "chief/core/history.h"
#include "chief/core/host_scores.h"
#include "chief/core/join_backoff.h"
#include "chief/core/limits.h"
#include "chief/core/no_progress.h"
#include "chief/core/outbox.h"
#include "chief/core/plan_tracker.h"
#include "chief/core/policy.h"
#include "chief/core/progress_tracker.h"
#include "chief/core/reachability.h"
#include "chief/core/roster.h"
#include "chief/core/stragglers.h"

namespace lockstep::chief {

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorConfig& config);

  // Applies one event and returns the actions to perform, in order. REQUIRES: `now` never goes backwards. After Exit
  // was returned nothing more comes.
  std::vector<Action> Step(absl::Time now, const Event& event);
  // The next instant at which a Tick could change anything; at most kTickEvery after the last one, whatever other
  // events came since.
  absl::Time NextDeadline() const;
  CoordinatorView View();
  // The newest generation, and how many members it was formed of.
  const Generation& generation() const { return current_.id; }
  size_t member_count() const { return current_.members.size(); }
  // A worker that is connected; null where there is none.
  const Worker* Find(const Incarnation& incarnation) { return roster_.Find(incarnation); }

  static constexpr absl::Duration kTickEvery = absl::Milliseconds(500);
  static constexpr absl::Duration kTickGap = absl::Milliseconds(1500);  // longer: this process was paused (rule 16)
  static constexpr absl::Duration kNoticed = absl::Seconds(7);          // an absence that workers may have noticed
  static constexpr absl::Duration kSayEvery = absl::Seconds(10);
  // The holder of a name is alive when it is heard so long after another process asked for the name: a message from
  // before its death would have arrived earlier.
  static constexpr absl::Duration kNameHeldFor = absl::Milliseconds(600);
  // Where nobody said how many workers to expect: they are all there when none came for so long.
  static constexpr absl::Duration kQuiet = absl::Seconds(3);
  static constexpr uint32_t kFailedRestoresBeforeEnd = 3;
  // With more workers the invariants whose cost grows with them are looked at in ticks and changes of phase only.
  static constexpr size_t kFewWorkers = 64;

 private:
  struct Accusation {
    Incarnation by;
    Incarnation suspect;  // the cause of a failure, as it says; itself, where it failed by itself
    bool while_forming = false;
  };
  // The newest generation of this chief, or the adopted one.
  struct CurrentGeneration {
    Generation id;
    std::vector<Member> members;  // by rank
    std::set<Incarnation> ids;    // of them
    Position begin;
    std::set<Incarnation> formed;
    bool restores = false;        // from the checkpoint
    std::string restore_failure;  // what a member said of it; empty while nobody did
    bool broken = false;          // by evidence, not met at a boundary
    uint64_t agreed = 0;          // when it was formed
    std::vector<Accusation> accused;
    std::set<RequestKind> requested;
    void Add(const Member& member);
    bool Has(const Incarnation& incarnation) const { return ids.count(incarnation) != 0; }
    std::vector<Incarnation> Ids() const;
  };
  struct Ending {
    int32_t code = 0;
    std::string reason;
    bool evaluates = false;  // the last state is evaluated before it is saved
  };

  // coordinator.cc
  void On(const Tick& event);
  void On(const FromWorker& event);
  void On(const SessionClosed& event);
  void On(const HeartbeatReceived& event);
  void On(const PlanStored& event);
  void On(const ShardStored& event);
  void On(const ShardBroken& event);
  void On(const ManifestStored& event);
  void On(const Published& event);
  void On(const StorageFailed& event);
  void On(const RepairRecorded& event);
  void On(const RepairFailed& event);
  void On(const TermLost& event);
  void On(const ProcessExited& event);
  void On(const StopRequested& event);
  void On(const BurstBegins& event);
  void On(const BurstEnds& event);
  void On(const DrainRequested& event);
  void NoteTime(absl::Time now);
  // True when the event is a Tick and `limit` has passed. No other event times anything out: an earlier message may
  // still lie in the queue.
  bool Passed(absl::Time limit) const { return judging_ && now_ >= limit; }
  bool AnyMember(const std::function<bool(const Worker&)>& is);
  void AdvancePhase();
  void Advance();
  void SayWhatIsAwaited();
  // For people, after "waiting for ".
  std::string WaitingText();
  std::string AwaitedText();
  // Why the workers that are here do not form a generation yet; empty when nothing but other workers is awaited.
  std::string DelayText();
  std::string ApartText();

  // coordinator_join.cc: sessions, plan, preparation, connection tests
  void OnHello(SessionId session, const WorkerFence& fence, const Hello& hello);
  // A process that is no worker of this job, or not one yet.
  void Refuse(SessionId session, int32_t code, const std::string& message);
  // A worker that cannot do its part: it ends with `code`, and `message` is its last line.
  void RefuseWorker(Worker& worker, int32_t code, const std::string& message);
  void Admit(Worker& worker, const Hello& hello);
  // This list; where the last worker named the same, that one's. Null for none.
  std::shared_ptr<const std::vector<Member>> Claims(const std::vector<Member>& members);
  // With lineages per generation: a chief that has neither adopted nor formed a generation learns the newest lineage
  // from its workers.
  void TakeUpLineage(const Lineage& lineage);
  void WelcomeFinished(Worker& worker, const Hello& hello);
  void OnMessage(Worker& worker, const PlanMade& message);
  void OnMessage(Worker& worker, const Ready& message);
  void OnMessage(Worker& worker, const PrepareFailed& message);
  void OnMessage(Worker& worker, const PeersTested& message);
  bool IsOfThisJob(const Ready& ready) const;
  void AcceptReady(Worker& worker, const Ready& ready);
  void PrepareOrPlan();
  void TestConnectionsDue();
  bool PlanMayBeReplaced(const Worker& asking);

  // coordinator_generation.cc: forming, boundaries, breaking
  void OnMessage(Worker& worker, const VerdictAck& message);
  void OnMessage(Worker& worker, const AtBoundary& message);
  void OnMessage(Worker& worker, const Formed& message);
  void OnMessage(Worker& worker, const PeerFailed& message);
  void OnMessage(Worker& worker, const StoreSet& message);
  void OnMessage(Worker& worker, const CommandRejected& message);
  bool InCurrent(Worker& worker, const Generation& generation);
  void SendVerdict(Worker& worker, const std::string& reason);
  void Break(const std::string& reason);
  void Rest(Worker& worker, const Generation& last, std::optional<HeldState> held);
  void AdvanceAdopting();
  void Adopt(const Worker& witness);
  bool ClaimComplete(const Worker& witness);
  // All members of the witness's generation are here, and one of them runs it no more.
  bool ClaimImpossible(const Worker& witness);
  // This chief was paused or cut off, and lost a member's session: what it takes for a death may be its own absence. It
  // listens for the running generation as a restarted chief does.
  void ListenAgain(const std::string& reason);
  // Whether this generation cannot go on, whoever comes back.
  bool IsOver(const Generation& generation) const { return generation <= over_ || generation < newest_; }
  // Whether the generation of this Hello may still be complete, and go on.
  bool MayGoOn(const Hello& hello);
  void AdvanceBreaking();
  void AdvanceForming();
  absl::Duration AckWindow();

  // coordinator_names.cc: two processes that ask for one name
  void AwaitName(SessionId session, const WorkerFence& fence, const Hello& hello);
  void ServeNames();

  // coordinator_drains.cc: workers that people send away
  void AddDrains(const DrainRequested& event, std::vector<std::string>& lines);
  void LiftDrains(const DrainRequested& event, std::vector<std::string>& lines);
  // Why the request cannot be met; empty when it can.
  std::string WhyNotDrain(const DrainRequested& event);
  // A process that holds nothing is turned away where a drain names it: true.
  bool RefuseDrained(SessionId session, const Hello& hello);
  // Marks those that a drain names as leaving, and unmarks those that none names any more.
  void MarkDrained();
  void DismissDrained(Worker& worker, const std::string& reason);
  // Those whose time is over.
  void EndLateDrains();
  std::string WhyLate(const Worker& worker);
  bool OthersStepOnWithout(const Worker& worker);
  std::string WhatRemains();
  std::string DrainText() const;

  // coordinator_team.cc: who can step together, and what broken generations tell about it
  struct Team {
    std::vector<Worker*> members;         // in rank order
    uint32_t staying = 0;                 // connected and able to step together, spares included, leavers not
    uint32_t present = 0;                 // those, and the ready ones that are known not to reach them
    bool in_doubt = false;                // a test of a pair is under way that decides who they are
    std::optional<Position> saved_first;  // held only by workers that cannot be with the members
  };
  Team ChooseTeam(bool with_leavers);
  std::vector<Worker*> CandidatesByState(bool with_leavers);
  std::vector<Worker*> LargestOf(const std::vector<Worker*>& candidates);
  uint32_t KnownOutside(const std::vector<Worker*>& candidates, const std::vector<Worker*>& members);
  bool LargerTeamWaits();
  void ConcludeBreak();
  // The most members that a generation can use.
  size_t Capacity() const { return std::min<size_t>(policy_.max_workers, policy_.training.logical_shards); }
  // Ends the pause for the first worker of the team that was not in the generation that failed. False: none did.
  bool EndPauseFor(const Team& team);

  // coordinator_waiting.cc: who forms the next generation, and from what
  void AdvanceWaiting();
  bool AwaitsMore(const Team& team);
  bool HoldsCurrent(const Worker& worker) const;
  Worker* BestAtRest(bool leavers_too);
  void FormGeneration(const Team& team);
  // Ends the job when restores fail again and again although nobody is lost.
  void CountFailedRestore();
  void Park(uint32_t staying);
  void ServeLeavers();
  bool LastCopyLeaves(const Worker& leaver);
  bool MayGo(const Worker& leaver);
  void SaveAtRest(const Position& position, const std::string& reason);
  void RequestBoundaries();
  void Request(RequestKind kind, const std::string& reason);
  bool NewcomerFits();

  // coordinator_checkpoint.cc: reports, saves, the end
  void OnMessage(Worker& worker, const Report& message);
  void OnMessage(Worker& worker, const SnapshotTaken& message);
  void OnMessage(Worker& worker, const ShareFailed& message);
  void OnMessage(Worker& worker, const EvalReport& message);
  void OnMessage(Worker& worker, const TextSample& message);
  // Whether another step was agreed on.
  bool TellProgress();
  void AdvanceSaves();
  bool FinishIfPublished();
  void AdvanceFinishing();
  void AdvanceDone();
  void Finish(const Ending& ending);
  void SendDone(Worker& worker);
  CheckpointTracker::Context SaveContext() const;

  // coordinator_audit.cc: replicas that differ
  void OnMessage(Worker& worker, const Returned& message);
  void CompareDigest(const Worker& worker, uint64_t step, const Digest& digest);
  void CompareHeld(const Worker& worker, const HeldState& held);
  void BeginAudit(const Form& form);
  void OnDifference(uint64_t step, const std::string& finding);
  bool GathersDigests();
  void BreakToRepair();
  // Nobody steps: makes the way back durable. What follows comes with RepairRecorded, and in AdvanceReturn.
  void AdvanceRepair();
  std::vector<AuditReturn::Offer> KeptOffers(const RepairRecorded& event);
  // Whether the job may go on: no copy of an audited state is awaited (any more).
  bool AdvanceReturn();
  void GoOnFrom(const AuditReturn::Outcome& outcome);
  void SendNamedAway(const std::vector<AuditRepair::Named>& named, const std::string& reason);
  void LeaveOutOrStop(const std::string& host, const std::string& finding);
  bool MayHoldNewer(const Worker& worker) const;

  // coordinator_failure.cc: losses, silence, the budget
  void OnMessage(Worker& worker, const LeaveIntent& message);
  void OnMessage(Worker& worker, const Left& message);
  void OnMessage(Worker& worker, const ErrorReport& message);
  void OnMessage(Worker& worker, const Hello& message);
  void Lose(Incarnation incarnation, WorkerChange change, const std::string& reason, bool close);
  // Several members, and none of them was heard lately: this chief is cut off.
  bool AllSilent();
  void NoteProgress(Worker& worker);
  void CheckLifeSigns();
  void SpendFailure(const std::string& host, const std::string& cause, bool broke_generation);
  void EndJob(int32_t code, const std::string& reason);

  // coordinator_hosts.cc: stragglers, hosts that fail, workers that come and go
  void NoteSpeed(const Worker& worker, const Report& message);
  // Why the members are to meet so that a spare worker takes a straggler's place; empty: no reason.
  std::string SwapText();
  const Worker* SpareFor(const Worker& straggler);
  // With spare workers, what is cut off at the end of `members` are the stragglers.
  void PutStragglersLast(std::vector<Worker*>& members);
  // An error of a process on `host`: of the host's score, or of the job's budget.
  void CountFailure(const std::string& host, const std::string& cause, bool broke_generation);
  // The replica of `worker` differs from those of the majority.
  void CountMismatch(const Worker& worker, const std::string& where);
  // Whether the job can go on without `host`, the hosts that are left out and those who leave.
  bool OthersSuffice(const std::string& host);
  void Exclude(const std::string& host);
  // Those on hosts that are left out leave, and are refused once they are at rest.
  void ServeExcluded();
  void NoteLoss(const std::string& host, const std::string& name);
  void ForgiveHosts(uint64_t published_step);
  void ViewHosts(CoordinatorView& view);

  const JobPolicy policy_;
  const Term term_;
  Lineage job_lineage_;  // without a generation's part; a repair begins another
  History history_;

  absl::Time now_ = absl::InfinitePast();
  absl::Time last_tick_ = absl::InfinitePast();
  absl::Time advanced_ = absl::InfinitePast();  // deadlines up to then were seen
  bool judging_ = false;                        // the event is a Tick
  bool only_told_ = false;                      // nothing follows from the event before the next Tick
  bool in_burst_ = false;                       // other events wait: what follows is decided after them
  Phase phase_ = Phase::kAdopting;
  absl::Time phase_since_;
  absl::Time deadline_ = absl::InfiniteFuture();  // of Adopting and Breaking
  absl::Time said_;
  absl::Time last_call_until_;              // a restore waits for workers until then
  std::optional<absl::Time> parked_since_;  // below the minimum
  std::optional<absl::Time> done_since_;

  struct NameClaim {
    WorkerFence fence;
    Hello hello;
    absl::Time since;
  };

  Roster roster_;
  std::weak_ptr<const std::vector<Member>> last_claims_;
  std::map<SessionId, NameClaim> name_claims_;   // wait until it is known whether the name's holder lives
  absl::Time last_came_ = absl::InfinitePast();  // a worker
  Departures gone_;
  Drains drains_;
  std::set<Incarnation> late_;  // drained workers of which was said that they are late
  Reachability pairs_;
  Outbox out_;
  CheckpointTracker saves_;
  ProgressTracker progress_;
  FailureBudget budget_;
  PlanTracker plan_;
  NoProgressLimit no_progress_;
  FormationBackoff backoff_;
  JoinBackoff joins_;
  HostScores hosts_;
  std::vector<std::string> left_out_;  // hosts, by the newest event
  Stragglers stragglers_;

  CurrentGeneration current_;
  Generation newest_;                             // that was formed or adopted here
  Generation over_;                               // nobody goes on with it, or with an older one
  absl::Time away_until_ = absl::InfinitePast();  // sessions that end before then say nothing of their workers
  uint64_t generations_ = 0;
  uint32_t failed_restores_ = 0;  // in a row, every member having lived on
  uint64_t requests_ = 0;
  uint64_t test_rounds_ = 0;
  std::set<Incarnation> joined_;    // were in a generation of this chief
  std::set<std::string> broke_by_;  // names whose loss broke the newest generation

  std::optional<Ending> ending_;  // a stop or the time limit is pending
  std::optional<Ending> result_;  // phase Done
  uint64_t final_step_ = 0;       // that Finishing saves
  absl::Time last_save_;
  absl::Duration trained_for_;

  Audit audit_;
  AuditRepair repair_;
  Generation parted_;  // generations up to this one computed what a repair gave up
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_COORDINATOR_H_
