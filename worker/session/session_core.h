// Decides what a worker does next. No sockets, threads, files, clock, randomness or logging: the same events at the
// same instants give the same actions.
//
// Between two steps the core acts on the reduced control word alone, or on a pure function of the step; a command of
// the chief or a SIGTERM only changes what this rank contributes to the next word. What the word asks for stands in
// boundary.h.
//
// Invariants
//   * One piece of work is under way at most: a step, a slice, a digest, the forming of a communicator, a state sync.
//   * An applied step is never given up: a Form or ReturnTo that would take this replica back within its lineage is
//     rejected.
//   * The chief hears "stopped" (VerdictAck, or a Hello that says idle) only after ComputingStopped.
//   * A snapshot is held until the chief says that its save ended.
//   * A command that does not fit (term, generation, position) changes nothing and is answered.
// Threading: thread-compatible; SessionLoop owns the only instance.
#ifndef LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_

#include <array>
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
#include "worker/session/events.h"
#include "worker/session/keep_policy.h"

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
  Generation generation() const { return generation_; }

 private:
  enum class Link { kDown, kConnecting, kGreeting, kWelcomed };
  // What a member waits for at a boundary.
  enum class Hold { kNone, kEarlierSave, kSave, kBest, kMeeting, kFinished };
  // The work under way while running.
  enum class Work { kNone, kStep, kSlice, kDigest };
  struct Snapshot {
    Lineage lineage;
    uint64_t step = 0;
    SnapshotCause cause = SnapshotCause::kDue;
    Generation generation;
    EvaluationLedger ledger;
    std::optional<SnapshotId> id;  // once its digest is known
  };

  // session_core.cc
  void Emit(Action action) { actions_.push_back(std::move(action)); }
  void Tell(WorkerMessage message, std::string reason = "");
  void UpdatePhase();
  void OnTick();
  void OnPlanFinished(const PlanFinished& event);
  void OnPrepared(const Prepared& event);
  void OnPreparationFailed(const PreparationFailed& event);
  void ExitWith(int32_t code, std::string reason, bool stuck = false);
  void FlushReport();
  bool ReportPending() const;
  absl::Duration ChiefSilence() const { return std::max(kChiefSilence, kBeatsMissed * policy_.heartbeat_interval); }
  // When this process gives up without a chief: what it holds, or the steps that it computes for one that may never
  // come.
  std::optional<absl::Time> ChiefLimit() const;
  std::optional<absl::Time> ReleaseTime() const;

  // session_core_chief.cc: the session and the chief's commands
  void OnConnected();
  void Greet();
  void OnDisconnected(const ChiefDisconnected& event);
  void OnBeatAnswered(const BeatAnswered& event);
  void GiveUpLink(const std::string& reason);
  void LoseLink(const std::string& reason);
  absl::Duration RetryWait() const;
  void SayHello();
  void OnCommand(const CommandReceived& event);
  void OnWelcome(const ChiefFence& fence, const Welcome& welcome);
  void TellEvaluations();
  void Reject(const ChiefFence& fence, const char* command, std::string reason);
  void OnPrepare(const ChiefFence& fence, const char* command, const Prepare& wanted);
  bool AboutMyGeneration(const ChiefFence& fence, const char* command);
  void Handle(const ChiefFence& fence, const ChiefCommand& command);
  void OnBoundaryRequest(const ChiefFence& fence, const BoundaryRequest& request);

  // session_core_generation.cc: forming, breaking, acknowledging
  void OnForm(const ChiefFence& fence, const Form& form);
  std::string WhyNotForm(const ChiefFence& fence, const Form& form) const;
  bool MayBecome(const Lineage& lineage) const;
  // The state, as it stands, begins another lineage.
  void GoOnAs(const Lineage& lineage);
  void OnCommunicatorFormed(const CommunicatorFormed& event);
  void OnStateSynced(const StateSynced& event);
  void StartGeneration(Digest digest);
  void OnCollectiveFailed(const CollectiveFailed& event);
  void OnVerdict(const ChiefFence& fence, const Verdict& verdict);
  void Break(const std::string& reason);
  void OnComputingStopped(const ComputingStopped& event);
  void Park();
  void Acknowledge(Generation generation);
  void SendAck(Generation generation, Digest digest);

  // session_core_boundary.cc: steps, slices and what lies between
  void OnStepFinished(const StepFinished& event);
  void OnSliceFinished(const SliceFinished& event);
  void OnDigestComputed(const DigestComputed& event);
  void AtBoundaryWith(const ControlWord& word);
  void ServeSave();
  void HoldFor(Hold hold);
  void ServeMeeting();
  void GoOn();
  void TellMeeting();
  void MeetAtBoundary(Digest digest);
  void ResumeFromHold(const std::string& reason);
  ControlContribution MySlot() const;

  // session_core_snapshot.cc
  void StartSnapshot(SnapshotCause cause);
  void OnSnapshotDone(const SnapshotDone& event);
  void OnTakeSnapshot(const ChiefFence& fence, const lockstep::TakeSnapshot& command);
  void OnAskShare(const AskShare& command);
  void OnShareFailed(const ShareUploadFailed& event);
  void OnSnapshotEnded(const SnapshotEnded& command);
  void TellSnapshot(const Snapshot& snapshot);

  // session_core_kept.cc
  struct Kept {
    SnapshotId copy;  // as it was named when it was taken
    KeptState state;
    EvaluationProgress progress;
  };
  bool KeepsThisAudit() const;
  void Audit();
  void NoteCopy(const DigestComputed& event);
  std::vector<KeptState> KeptStates() const;
  void DropAllKept(const std::string& reason);
  void OnReturnTo(const ReturnTo& command);
  void OnKeptTakenUp(const KeptTakenUp& event);
  void ForgetKeptAfter(uint64_t step);

  // session_core_leave.cc
  void OnTermSignal(const TermSignal& event);
  void LeaveIfGraceEnds();
  bool AsksToLeave() const;
  void TellLeaveIntent();

  const SessionConfig config_;
  absl::Time now_ = absl::InfinitePast();
  std::vector<Action> actions_;

  // The session.
  Link link_ = Link::kDown;
  bool hello_waits_ = false;  // connected while computing was being stopped: Hello goes out after that
  absl::Time next_connect_ = absl::InfinitePast();
  absl::Time last_attempt_ = absl::InfinitePast();
  uint64_t attempts_ = 0;  // to reach a chief, in this process
  absl::Time greeting_limit_ = absl::InfiniteFuture();
  absl::Time link_down_since_ = absl::InfinitePast();
  bool handed_over_ = false;                 // by the last chief, to one that has not come yet
  absl::Time heard_ = absl::InfinitePast();  // a chief that this worker is welcome at
  std::string job_;
  std::string name_;
  Term term_ = 0;
  Term highest_term_ = 0;
  TrainingPolicy policy_;  // changes only outside a generation, so that its members decide by the same
  TrainingPolicy newest_policy_;
  Prepare preparing_;  // while preparing; without a plan_hash: making the plan
  std::optional<Ready> ready_;

  // The replica.
  bool has_state_ = false;
  Lineage lineage_;
  Position position_;
  EvaluationProgress progress_;  // of position_
  bool published_ = false;       // the state was just restored from the checkpoint of position_

  // The generation.
  Phase phase_ = Phase::kIdle;
  Generation generation_;       // none outside one
  Generation last_generation_;  // the newest this process was ever part of
  std::vector<Member> members_;
  uint32_t rank_ = 0;
  Form form_;  // while forming
  Work work_ = Work::kNone;
  Hold hold_ = Hold::kNone;
  BoundaryWork boundary_;                           // being served
  std::array<uint64_t, kRequestKinds> requests_{};  // contributed until served
  std::array<uint64_t, kRequestKinds> served_{};
  std::vector<Generation> verdicts_;  // to acknowledge once stopped
  std::optional<Generation> ack_waits_for_digest_;
  std::optional<PeerFailed> failure_;  // evidence that no chief has heard yet
  absl::Time stop_limit_ = absl::InfiniteFuture();
  absl::Time parked_since_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfinitePast();  // with a prepared replica
  bool released_ = false;                         // since then

  // Snapshots, oldest first.
  std::vector<Snapshot> snapshots_;

  // Copies of states at audits, oldest first; at most kMaxKeptStates.
  std::vector<Kept> kept_;
  bool may_keep_ = false;
  KeepPolicy keep_policy_;
  absl::Time keep_begin_;
  ReturnTo returning_;  // while returning
  std::optional<StatesDiffer> differ_;

  // Reports.
  std::vector<StepRecord> records_;
  std::vector<StateDigest> digests_;
  Position reported_;
  absl::Time next_report_ = absl::InfinitePast();
  // What the newest evaluations gave, as far as this rank took part, oldest first: a chief that was away hears of them.
  std::vector<EvalReport> evaluations_;

  // SIGTERM.
  bool leaving_ = false;
  absl::Time grace_end_ = absl::InfiniteFuture();

  std::optional<SetPhase> phase_told_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_
