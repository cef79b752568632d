// Decides what a worker does next. No sockets, threads, files, clock, randomness or logging: the same events at the
// same instants give the same actions.
//
// Between two steps the core acts on the reduced control word alone, or on a pure function of the step; a command of
// the chief or a SIGTERM only changes what this rank contributes to the next word. What the word asks for stands in
// boundary.h.
//
// What belongs together is a part of its own: the session (chief_link.h), the generation (membership.h), requests of
// the chief (boundary_requests.h), snapshots (held_snapshots.h), copies of audited states (kept_copies.h), reports
// (unsent_reports.h), the end of the process (grace_period.h).
//
// Invariants, checked after every event (BrokenInvariant): those of the parts, and
//   * One piece of work is under way at most: a step, a slice, a digest, the forming of a communicator, a state sync.
//   * An applied step is never given up: a Form or ReturnTo that would take this replica back within its lineage is
//     rejected.
//   * The chief hears "stopped" (VerdictAck, or a Hello that says idle) only after ComputingStopped.
//   * A snapshot is held until the chief says that its save ended.
//   * A command that does not fit (term, generation, position) changes nothing and is answered.
// Threading: thread-compatible; SessionLoop owns the only instance.
#ifndef LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/control.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "worker/session/actions.h"
#include "worker/session/boundary.h"
#include "worker/session/boundary_requests.h"
#include "worker/session/chief_link.h"
#include "worker/session/events.h"
#include "worker/session/grace_period.h"
#include "worker/session/held_snapshots.h"
#include "worker/session/kept_copies.h"
#include "worker/session/membership.h"
#include "worker/session/unsent_reports.h"

namespace lockstep::worker {

// What a worker knows of itself at its start.
struct SessionConfig {
  Incarnation incarnation;
  std::string job;             // empty: any
  std::string preferred_name;  // empty: the chief chooses
  std::string host;
  std::string peer_address;
  std::string device;
  absl::Duration greeting_limit = absl::Seconds(5);  // how long a Hello may stay unanswered
  // How long a prepared replica has to be outside of generations before it gives back what only steps need: far longer
  // than it takes to form anew after a death.
  absl::Duration release_after = absl::Seconds(15);
  LS_FIELDS(SessionConfig, incarnation, job, preferred_name, host, peer_address, device, greeting_limit, release_after)
};

// The path of a worker. The session to the chief is a thing of its own: it may be lost and come back in any state.
//
//   1 connecting ──2 joining ──3 preparing ──4 ready ──5 forming ──6 running ◄──► 7 holding
//                                              ▲   (spare: stays)     │  at a boundary: a save, a new
//                                              │                      │  generation, the job's end
//                                   9 acked ◄──┴── 8 broken ◄─────────┘  from 5, 6 or 7
//   10 leaving: from any state on SIGTERM, Dismiss, Shutdown or Done, then the process ends
//
//   1  no session: Connect at once, then every second. Steps go on if there is a generation.
//   2  Hello is sent, Welcome awaited.
//   3  MakePlan or Prepare is under way.
//   4  outside a generation, with or without state; prepared workers answer TestPeers and Form. 4 and 9 are one phase.
//      On ReturnTo a copy that was kept becomes the state; then here again.
//   5  FormCommunicator, then SyncState (left out when nobody receives).
//   6  RunStep and RunSlice, with PlanBoundary between them.
//   7  waits at a boundary for SnapshotEnded, Form, Dismiss or Done. Ends in 6 when the chief is lost, unless the job
//      is finished or the state is the best so far and not yet published.
//   8  verdict, collective error or a boundary that nobody can form at: collectives aborted, waiting for
//      ComputingStopped; what an update that had begun applies still counts.
//   9  stopped and acknowledged, state in memory; keeps it for chief_timeout when no chief is there.
//   Whoever stays in 4 or 9 for a while says ReleaseMemory, once.
class SessionCore {
 public:
  enum class Phase { kIdle, kPreparing, kReturning, kForming, kSyncing, kRunning, kHolding, kStopping, kExited };
  // A chief that says nothing and answers no heartbeat for so long hangs or cannot be reached: the session is given up.
  // Longer where the job allows workers a longer silence.
  static constexpr absl::Duration kChiefSilence = absl::Seconds(8);
  static constexpr int kBeatsMissed = 16;
  // To verify a copy and bring it to the device; longer, and the device or its driver hangs.
  static constexpr absl::Duration kReturnLimit = absl::Minutes(2);
  // Between two events, longer: this process was paused, and what looks late may lie in its queue.
  static constexpr absl::Duration kTickGap = absl::Milliseconds(1500);

  explicit SessionCore(SessionConfig config);

  // Applies one event and returns the actions to perform, in order. REQUIRES: `now` never goes backwards. After an Exit
  // every further event gives no action.
  std::vector<Action> Step(absl::Time now, const Event& event);

  // The next instant at which a Tick could change anything.
  absl::Time NextDeadline() const;

  // For status and tests.
  Phase phase() const { return phase_; }
  bool has_state() const { return has_state_; }
  Position position() const { return position_; }
  const Lineage& lineage() const { return lineage_; }
  Generation generation() const { return membership_.generation(); }

 private:
  using Link = ChiefLink::State;
  // What a member waits for at a boundary.
  enum class Hold { kNone, kEarlierSave, kSave, kBest, kMeeting, kFinished };
  // The work under way while running.
  enum class Work { kNone, kStep, kSlice, kDigest };

  void Emit(Action action) { actions_.push_back(std::move(action)); }
  void Tell(WorkerMessage message, std::string reason = "");
  void ExitWith(int32_t code, std::string reason, bool stuck = false);
  void UpdatePhase();
  void FlushReport();
  bool ReportPending() const;
  absl::Duration ChiefSilence() const { return std::max(kChiefSilence, kBeatsMissed * policy_.heartbeat_interval); }
  // When this process gives up without a chief: what it holds, or the steps that it computes for one that may never
  // come.
  std::optional<absl::Time> ChiefLimit() const;
  std::optional<absl::Time> ReleaseTime() const;
  // "" while the invariants of the parts hold, and those of how they stand to each other.
  std::string BrokenInvariant() const;

  // session_core.cc, and where an event belongs: one for each alternative of Event
  void On(const Tick& event);
  void On(const ChiefConnected& event);
  void On(const ChiefDisconnected& event);
  void On(const BeatAnswered& event);
  void On(const CommandReceived& event);
  void On(const PlanFinished& event);
  void On(const Prepared& event);
  void On(const PreparationFailed& event);
  void On(const PeersTestedHere& event);
  void On(const CommunicatorFormed& event);
  void On(const StateSynced& event);
  void On(const CollectiveFailed& event);
  void On(const StepFinished& event);
  void On(const SliceFinished& event);
  void On(const TextWritten& event);
  void On(const Observed& event);
  void On(const ComputingStopped& event);
  void On(const DigestComputed& event);
  void On(const KeptTakenUp& event);
  void On(const SnapshotDone& event);
  void On(const ShareUploaded&) {}  // the chief hears of it from the upload itself
  void On(const ShareUploadFailed& event);
  void On(const TermSignal& event);
  void On(const InternalError& event);
  void On(const DataLost& event);

  // session_core_chief.cc, and where a command belongs: one for each alternative of ChiefCommand
  void Obey(const ChiefFence& fence, const Welcome& welcome);
  void Obey(const ChiefFence& fence, const Refused& command);
  void Obey(const ChiefFence& fence, const MakePlan& command);
  void Obey(const ChiefFence& fence, const lockstep::Prepare& command);
  void Obey(const ChiefFence& fence, const TestPeers& command);
  void Obey(const ChiefFence& fence, const Verdict& verdict);
  void Obey(const ChiefFence& fence, const Form& form);
  void Obey(const ChiefFence& fence, const BoundaryRequest& request);
  void Obey(const ChiefFence& fence, const lockstep::TakeSnapshot& command);
  void Obey(const ChiefFence& fence, const AskShare& command);
  void Obey(const ChiefFence& fence, const ReturnTo& command);
  void Obey(const ChiefFence&, const StatesDiffer& command) { differ_ = command; }
  void Obey(const ChiefFence& fence, const SnapshotEnded& command);
  void Obey(const ChiefFence& fence, const Dismiss& command);
  void Obey(const ChiefFence& fence, const Shutdown& command);
  void Obey(const ChiefFence& fence, const Done& command);
  void Obey(const ChiefFence& fence, const Fenced& command);
  void Obey(const ChiefFence& fence, const StorePush& command);

  // The session.
  void Greet();
  void SayHello();
  void GiveUpLink(const std::string& reason);
  void LoseLink(const std::string& reason);
  void Reject(const ChiefFence& fence, const char* command, std::string reason);
  bool AboutMyGeneration(const ChiefFence& fence, const char* command);
  void PrepareFor(const ChiefFence& fence, const char* command, const lockstep::Prepare& wanted);
  void TellEvaluations();
  void BeginToLeave(absl::Duration grace, const std::string& why);
  void ExitAsLeaver(const std::string& reason);
  void TellLeaveIntent() { Tell(LeaveIntent{grace_.Left(now_)}); }

  // session_core_generation.cc: forming, breaking, acknowledging
  std::string WhyNotForm(const ChiefFence& fence, const Form& form) const;
  bool MayBecome(const Lineage& lineage) const;
  // The state, as it stands, begins another lineage.
  void GoOnAs(const Lineage& lineage);
  void StartGeneration(Digest digest);
  void Break(const std::string& reason);
  void Park();
  void Acknowledge(Generation generation);
  void SendAck(Generation generation, Digest digest);

  // session_core_boundary.cc: steps, slices and what lies between
  void AtBoundaryWith(const ControlWord& word);
  void Audit();
  void ServeSave();
  void HoldFor(Hold hold);
  void ServeMeeting();
  void GoOn();
  void TellMeeting();
  void MeetAtBoundary(Digest digest);
  void ResumeFromHold(const std::string& reason);
  bool Meets() const { return phase_ == Phase::kHolding && hold_ == Hold::kMeeting; }
  ControlContribution MySlot() const;

  // session_core_copies.cc: snapshots, and copies of audited states
  void StartSnapshot(SnapshotCause cause);
  void TellSnapshot(const HeldSnapshots::Snapshot& snapshot);
  void DropKeptCopies(const std::vector<SnapshotId>& copies, const std::string& reason);
  void DropAllKept(const std::string& reason) { DropKeptCopies(kept_.TakeAll(), reason); }

  const SessionConfig config_;
  absl::Time now_ = absl::InfinitePast();
  std::vector<Action> actions_;
  Phase phase_ = Phase::kIdle;

  // The session.
  ChiefLink link_;
  std::string job_;
  std::string name_;
  TrainingPolicy policy_;  // changes only outside a generation, so that its members decide by the same
  TrainingPolicy newest_policy_;
  lockstep::Prepare preparing_;  // while preparing; without a plan_hash: making the plan
  std::optional<Ready> ready_;
  std::optional<SetPhase> phase_told_;

  // The replica.
  bool has_state_ = false;
  Lineage lineage_;
  Position position_;
  EvaluationProgress progress_;  // of position_
  bool published_ = false;       // the state was just restored from the checkpoint of position_

  // The generation.
  Membership membership_;
  BoundaryRequests requests_;
  Work work_ = Work::kNone;
  Hold hold_ = Hold::kNone;
  BoundaryWork boundary_;             // being served
  std::vector<Generation> verdicts_;  // to acknowledge once stopped
  std::optional<Generation> ack_waits_for_digest_;
  std::optional<PeerFailed> failure_;  // evidence that no chief has heard yet
  absl::Time stop_limit_ = absl::InfiniteFuture();
  absl::Time parked_since_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfinitePast();  // with a prepared replica
  bool released_ = false;                         // since then

  HeldSnapshots snapshots_;
  KeptCopies kept_;
  ReturnTo returning_;  // while returning
  std::optional<StatesDiffer> differ_;
  UnsentReports reports_;
  HeldEvaluations evaluations_;
  GracePeriod grace_;
  std::optional<std::string> data_lost_;  // why it leaves
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_
