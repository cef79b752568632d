// Decides what the job does next. No sockets, threads, files, clock, randomness or logging: the same events at the same
// instants give the same actions.
//
// It routes events to the parts that own the job's state, takes their answers, and fixes the order in which they act.
// GenerationLife decides which generation goes on; its diagram is that of the whole chief.
//
// Invariants, checked after every event (Broken): those of invariants.h, of GenerationLife and of Preparation, and
//   * A generation is formed from the highest position that a worker acknowledged at rest, never from a report or a
//     heartbeat. It is formed from the storage only if no connected worker holds, or may hold, anything newer.
//   * No generation steps with fewer workers than the minimum.
//   * PublishCommit{s} is emitted only after ManifestStored{s} came in (checkpoint_tracker.h).
// Threading: thread-compatible; ChiefLoop owns the only instance.
#ifndef LOCKSTEP_CHIEF_CORE_COORDINATOR_H_
#define LOCKSTEP_CHIEF_CORE_COORDINATOR_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/audit.h"
#include "chief/core/audit_floor.h"
#include "chief/core/audit_repair.h"
#include "chief/core/awaited_text.h"
#include "chief/core/checkpoint_tracker.h"
#include "chief/core/coordinator_view.h"
#include "chief/core/core_context.h"
#include "chief/core/departures.h"
#include "chief/core/drain_desk.h"
#include "chief/core/events.h"
#include "chief/core/gathering.h"
#include "chief/core/generation_life.h"
#include "chief/core/handover.h"
#include "chief/core/history.h"
#include "chief/core/host_policy.h"
#include "chief/core/job_end.h"
#include "chief/core/life_signs.h"
#include "chief/core/name_claims.h"
#include "chief/core/newcomers.h"
#include "chief/core/outbox.h"
#include "chief/core/policy.h"
#include "chief/core/preparation.h"
#include "chief/core/progress_tracker.h"
#include "chief/core/reachability.h"
#include "chief/core/roster.h"
#include "chief/core/save_period.h"
#include "chief/core/skipped_saves.h"
#include "chief/core/straggler_watch.h"
#include "chief/core/team_choice.h"
#include "chief/core/training_clock.h"

namespace lockstep::chief {

class Coordinator {
 public:
  explicit Coordinator(const CoordinatorConfig& config);

  // Applies one event and returns the actions to perform, in order. REQUIRES: `now` never goes backwards. After it has
  // returned Exit it returns no more actions.
  std::vector<Action> Step(absl::Time now, const Event& event);
  // The next instant at which a Tick could change anything; at most kTickEvery after the last one, whatever other
  // events came since.
  absl::Time NextDeadline() const;
  CoordinatorView View();
  Phase phase() const { return life_.phase(); }  // View().phase, without the rest of it
  // The newest generation, and the number of members with which it was formed.
  const Generation& generation() const { return life_.current().id; }
  size_t member_count() const { return life_.current().members.size(); }
  // The connected worker of this incarnation; null if there is none.
  const Worker* Find(const Incarnation& incarnation) { return roster_.Find(incarnation); }

  static constexpr absl::Duration kTickEvery = absl::Milliseconds(500);
  static constexpr absl::Duration kTickGap = absl::Milliseconds(1500);  // longer: this process was paused (rule 16)
  static constexpr absl::Duration kSayEvery = absl::Seconds(10);
  static constexpr absl::Duration kQuiet = Gathering::kQuiet;
  // With more workers than this, invariants whose cost grows with their number are checked only in ticks and changes of
  // phase.
  static constexpr size_t kFewWorkers = 64;

 private:
  // coordinator.cc: time, the order of things
  void On(const Tick& event);
  void On(const ShareStored& event) { saves_.Stored(event); }
  void On(const FrozenShareMissing& event) { saves_.FrozenMissing(event); }
  void On(const ShareBroken& event) { saves_.Broken(event, out_, roster_); }
  void On(const ManifestStored& event) { saves_.ManifestDone(event, SaveContext(), out_, roster_); }
  void On(const Published& event);
  void On(const StorageFailed& event);
  void On(const PlanStored& event) { preparation_.Stored(event, now_); }
  void On(const TermLost& event);
  void On(const ProcessExited& event);
  void On(const StopRequested& event);
  void On(const DrainRequested& event);
  void On(const BurstBegins&) { in_burst_ = true; }
  void On(const BurstEnds&) { in_burst_ = false; }
  void NoteTime(absl::Time now);
  // The job was in the phase Running for `passed` longer.
  void Trained(absl::Duration passed);
  // Whether a save that is due may be requested: no save is under way, or members are to wait for it.
  bool MaySave() const { return policy_.training.wait_for_saves || !saves_.Busy(); }
  void NoteTaken(uint64_t step);
  absl::Duration SaveEvery() const { return policy_.save_automatic ? save_period_.Every() : policy_.save_every; }
  void Advance();
  void AdvancePhase();
  void CountFailure(const std::string& host, const std::string& cause, bool broke_generation);
  void EndJob(int32_t code, const std::string& reason);
  std::string Broken(const SnapshotId& published_before, bool same_job_lineage, bool in_full,
                     const std::vector<Action>& actions);

  // coordinator_phases.cc: what each phase does
  void AdvanceAdopting();
  void AdvanceWaiting();
  void AdvanceForming();
  void AdvanceBreaking();
  void AdvanceFinishing();
  void AdvanceDone();
  void FormGeneration(const Team& team);
  void RequestBoundaries();
  // Breaks the generation for `reason`; does nothing if it is empty.
  void Break(const std::string& reason);
  bool FinishIfPublished();
  // Saves the states that workers hold at rest. Called in Waiting.
  void SaveBeforeHandover();
  void HandOverIfSaved();

  // coordinator_sessions.cc: workers that come and go
  void On(const SessionClosed& event);
  void OnHello(SessionId session, const WorkerFence& fence, const Hello& hello);
  // Refuses a process that is not a worker of this job, or not yet.
  void Refuse(SessionId session, int32_t code, const std::string& message);
  void RefuseWorker(Worker& worker, const std::optional<Preparation::Refusal>& refusal);
  void Admit(Worker& worker, const Hello& hello);
  // With one lineage per generation: a chief that has neither adopted nor formed a generation learns the newest lineage
  // from its workers.
  void TakeUpLineage(const Lineage& lineage);
  void WelcomeFinished(Worker& worker, const Hello& hello);
  void Lose(Incarnation incarnation, WorkerChange change, const std::string& reason, bool close);
  void LoseTheLifeless();
  void ServeNames();
  void ServeLeavers();

  // coordinator_messages.cc: messages of workers
  void On(const FromWorker& event);
  void On(const HeartbeatReceived& event);
  void OnMessage(Worker& worker, const Hello& message);
  void OnMessage(Worker& worker, const PlanMade& message);
  void OnMessage(Worker& worker, const Ready& message);
  void OnMessage(Worker& worker, const PrepareFailed& message);
  void OnMessage(Worker& worker, const PeersTested& message);
  void OnMessage(Worker& worker, const VerdictAck& message);
  void OnMessage(Worker& worker, const AtBoundary& message);
  void OnMessage(Worker& worker, const Formed& message);
  void OnMessage(Worker& worker, const PeerFailed& message);
  void OnMessage(Worker& worker, const StoreSet& message);
  void OnMessage(Worker& worker, const CommandRejected& message);
  void OnMessage(Worker& worker, const Report& message);
  void OnMessage(Worker& worker, const EvalReport& message);
  void OnMessage(Worker& worker, const TextSample& message);
  void OnMessage(Worker& worker, const Observation& message);
  void OnMessage(Worker& worker, const SnapshotTaken& message);
  // Handles the snapshots that were reported before the members of their generation were known.
  void TakeEarlySnapshots(Worker& worker);
  void OnMessage(Worker& worker, const ShareFailed& message);
  void OnMessage(Worker& worker, const LeaveIntent& message);
  void OnMessage(Worker& worker, const Left& message);
  void OnMessage(Worker& worker, const ErrorReport& message);
  void Rest(Worker& worker, const Generation& last, std::optional<HeldState> held);
  // Emits newly agreed steps and evaluations. Returns whether a step became agreed.
  bool TellProgress();

  // coordinator_audit.cc: replicas that differ
  void On(const RepairRecorded& event);
  void On(const RepairFailed& event);
  void OnMessage(Worker& worker, const Returned& message);
  // Takes a Hello as the answer to ReturnTo: the answer itself may have been lost with the previous session.
  void AnswerByHello(const Worker& worker, const Hello& hello);
  void CompareDigest(const Worker& worker, uint64_t step, const Digest& digest);
  void CompareHeld(const Worker& worker, const HeldState& held);
  void BeginAudit(const Form& form);
  void OnDifference(uint64_t step, const std::string& finding);
  void HearOfDifference(const Worker& worker, const Hello& hello);
  // A snapshot that shows a difference belongs to no save; the worker is told to drop it.
  void OnDifference(Worker& worker, const SnapshotId& snapshot, const std::string& finding);
  bool GathersDigests();
  void BreakToRepair();
  // No worker steps: has the repair recorded. RepairRecorded and AdvanceReturn continue from there.
  void AdvanceRepair();
  std::vector<AuditReturn::Offer> KeptOffers(const RepairRecorded& event);
  // Returns whether the job may go on: no copy of an audited state is awaited.
  bool AdvanceReturn();
  void GoOnFrom(const AuditReturn::Outcome& outcome);
  void SendNamedAway(const std::vector<AuditRepair::Named>& named, const std::string& reason);
  void LeaveOutOrStop(const std::string& host, const std::string& finding);

  // The arguments of the parts.
  CoreContext Context() { return {policy_, term_, now_, is_tick_, roster_, out_, history_, job_lineage_}; }
  CheckpointTracker::Context SaveContext() const;
  TeamChoice Teams();
  StragglerWatch::Facts Spares() const { return {life_.current(), pairs_, newcomers_}; }
  AwaitedFacts Awaited(const CoreContext& context) const;

  const JobPolicy policy_;
  const Term term_;
  Lineage job_lineage_;  // without the suffix of a generation; a repair begins another
  History history_;

  absl::Time now_ = absl::InfinitePast();
  absl::Time last_tick_ = absl::InfinitePast();
  absl::Time advanced_ = absl::InfinitePast();  // deadlines up to this instant were handled
  absl::Time said_;                             // when the reason for waiting was last announced
  bool is_tick_ = false;                        // the event is a Tick
  bool defers_to_tick_ = false;                 // the event has no consequence before the next Tick
  bool in_burst_ = false;                       // more events are queued: consequences are decided after them

  Roster roster_;
  Outbox out_;
  NameClaims names_;
  Preparation preparation_;
  Reachability pairs_;
  Gathering gathering_;
  GenerationLife life_;
  Newcomers newcomers_;
  StragglerWatch stragglers_;
  ProgressTracker progress_;
  CheckpointTracker saves_;
  TrainingClock clock_;
  SavePeriod save_period_;  // for `checkpoint.every: auto`
  SkippedSaves skipped_;
  Audit audit_;
  AuditFloor floor_;
  AuditRepair repair_;
  LifeSigns signs_;
  HostPolicy hosts_;
  DrainDesk drains_;
  Departures gone_;
  JobEnd end_;
  Handover handover_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_COORDINATOR_H_
