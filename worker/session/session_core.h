// Decides what a worker does next. No sockets, threads, files, clock, randomness or logging: the same events at the
// same instants give the same actions.
//
// Between two steps the core acts only on the reduced control word and the step number, which are the same on all
// ranks. A command of the chief or a SIGTERM only changes this rank's contribution to the next word. boundary.h decides
// what follows from the word.
//
// The core consists of parts: the session (chief_link.h), the generation (membership.h), requests of the chief
// (boundary_requests.h), snapshots (held_snapshots.h), copies of audited states (kept_copies.h), reports
// (unsent_reports.h), the grace period (grace_period.h).
//
// Invariants, checked after every event (BrokenInvariant): those of the parts, and
//   * At most one piece of work is in progress: a step, a slice, a digest, the forming of a communicator, a state sync.
//   * An applied step is never given up: a Form or ReturnTo that would move this replica back within its lineage is
//     rejected.
//   * The chief is told "stopped" (VerdictAck, or a Hello that says idle) only after ComputingStopped.
//   * A snapshot is held until the chief reports the end of its save.
//   * A command with the wrong term, generation or position changes nothing and is answered with a rejection.
//
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

// A worker's properties at its start.
struct SessionConfig {
  Incarnation incarnation;
  std::string job;             // empty: any
  std::string preferred_name;  // empty: the chief chooses
  std::string host;
  std::string peer_address;
  std::string device;
  absl::Duration greeting_limit = absl::Seconds(5);  // time limit for the answer to a Hello
  // How long a prepared replica must be outside of generations before it frees the memory that only steps need: far
  // longer than forming a new generation after a crash.
  absl::Duration release_after = absl::Seconds(15);
  LS_FIELDS(SessionConfig, incarnation, job, preferred_name, host, peer_address, device, greeting_limit, release_after)
};

// The states of a worker. The session with the chief (chief_link.h) is independent of them: it may be lost and restored
// in any state.
//
//   1 connecting ──2 joining ──3 preparing ──4 ready ──5 forming ──6 running ◄──► 7 holding
//                                              ▲   (spare: stays)     │  at a boundary: a save, a new
//                                              │                      │  generation, the job's end
//                                   9 acked ◄──┴── 8 broken ◄─────────┘  from 5, 6 or 7
//   10 leaving: from any state on SIGTERM, Dismiss, Shutdown or Done, then the process ends
//
//   1  No session: Connect at once, then every second. Steps continue if there is a generation.
//   2  Hello is sent, Welcome awaited.
//   3  MakePlan or Prepare is in progress.
//   4  Outside a generation, with or without state; prepared workers answer TestPeers and Form. 4 and 9 are one phase.
//      On ReturnTo a kept copy becomes the state, and the worker stays here.
//   5  FormCommunicator, then SyncState (skipped when nobody receives).
//   6  RunStep and RunSlice, with PlanBoundary between them.
//   7  Waits at a boundary for SnapshotEnded, Form, Dismiss or Done. Returns to 6 when the chief is lost, unless the
//      job is finished or the state is the best so far and not yet published.
//   8  After a verdict, a collective error, or a boundary at which no new generation can form: collectives are aborted,
//      ComputingStopped is awaited. An update that has begun still counts.
//   9  Stopped and acknowledged, state in memory; without a chief the worker keeps it for chief_timeout.
//   After some time in 4 or 9 the core emits ReleaseMemory, once.
class SessionCore {
 public:
  enum class Phase { kIdle, kPreparing, kReturning, kForming, kSyncing, kRunning, kHolding, kStopping, kExited };
  // A chief that sends nothing and answers no heartbeat for this time hangs or is unreachable: the session is given up.
  // The time is longer if the job allows workers a longer silence.
  static constexpr absl::Duration kChiefSilence = absl::Seconds(8);
  static constexpr int kBeatsMissed = 16;
  // The time limit for verifying a copy and loading it to the device; beyond it the device or its driver hangs.
  static constexpr absl::Duration kReturnLimit = absl::Minutes(2);
  // A longer gap between two events means that this process was paused; messages that seem late may be in its queue.
  static constexpr absl::Duration kTickGap = absl::Milliseconds(1500);

  explicit SessionCore(SessionConfig config);

  // Applies one event and returns the actions to perform, in order. After an Exit there are no further actions.
  // REQUIRES: `now` never goes backwards.
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
  // What a member awaits at a boundary.
  enum class Hold { kNone, kEarlierSave, kSave, kBest, kMeeting, kFinished };
  // The work in progress while running.
  enum class Work { kNone, kStep, kSlice, kDigest };

  void Emit(Action action) { actions_.push_back(std::move(action)); }
  void Tell(WorkerMessage message, std::string reason = "");
  void ExitWith(int32_t code, std::string reason, bool stuck = false);
  void UpdatePhase();
  void FlushReport();
  bool ReportPending() const;
  absl::Duration ChiefSilence() const { return std::max(kChiefSilence, kBeatsMissed * policy_.heartbeat_interval); }
  // When this process gives up waiting for a chief, with the state that it holds or the steps that it computes.
  std::optional<absl::Time> ChiefLimit() const;
  std::optional<absl::Time> ReleaseTime() const;
  // Describes a violated invariant, of the parts or between them; "" while all hold.
  std::string BrokenInvariant() const;

  // One function for each alternative of Event, in session_core.cc or in the file of its topic.
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
  void On(const ShareUploaded&) {}  // the chief learns it from the upload itself
  void On(const ShareUploadFailed& event);
  void On(const TermSignal& event);
  void On(const InternalError& event);
  void On(const DataLost& event);

  // One function for each alternative of ChiefCommand, in session_core_chief.cc or in the file of its topic.
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

  // session_core_generation.cc: forming, breaking, acknowledging.
  std::string WhyNotForm(const ChiefFence& fence, const Form& form) const;
  bool MayBecome(const Lineage& lineage) const;
  // The current state continues as another lineage.
  void GoOnAs(const Lineage& lineage);
  void StartGeneration(Digest digest);
  void Break(const std::string& reason);
  void Park();
  void Acknowledge(Generation generation);
  void SendAck(Generation generation, Digest digest);

  // session_core_boundary.cc: steps, slices, and boundaries between them.
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

  // session_core_copies.cc: snapshots, and copies of audited states.
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
  TrainingPolicy policy_;  // changes only outside a generation, so that all members decide by the same policy
  TrainingPolicy newest_policy_;
  lockstep::Prepare preparing_;  // while preparing; an empty plan_hash: the kernel plan is being made
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
  std::optional<PeerFailed> failure_;  // evidence that was not yet sent to a chief
  absl::Time stop_limit_ = absl::InfiniteFuture();
  absl::Time parked_since_ = absl::InfinitePast();
  absl::Time idle_since_ = absl::InfinitePast();  // outside a generation with a prepared replica
  bool released_ = false;                         // memory was released since then

  HeldSnapshots snapshots_;
  KeptCopies kept_;
  ReturnTo returning_;  // while returning
  std::optional<StatesDiffer> differ_;
  UnsentReports reports_;
  HeldEvaluations evaluations_;
  GracePeriod grace_;
  std::optional<std::string> data_lost_;  // the message of DataLost, if the worker leaves because of it
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_CORE_H_
