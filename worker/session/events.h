// The events of the worker's session core. The shell (session_loop) runs the replica, the collectives and the gRPC
// client, and turns their results into events. Every completion names its generation (and step): the core ignores
// completions of a generation that it has left.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_SESSION_EVENTS_H_
#define LOCKSTEP_WORKER_SESSION_EVENTS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/control.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/status/exit_code.h"
#include "common/variant/one_of.h"

namespace lockstep::worker {

// Time has passed. Sent at least every 500 ms, and at NextDeadline().
struct Tick {
  LS_NO_FIELDS(Tick)
};

// Connect succeeded: the stream is open, and a Hello is due.
struct ChiefConnected {
  LS_NO_FIELDS(ChiefConnected)
};

// Connect failed, or the open stream ended. The worker keeps stepping and retries every second (rule 10).
struct ChiefDisconnected {
  std::string reason;
  bool bad_token = false;    // the chief refused the token: exit 77
  bool handed_over = false;  // the chief is exiting and leaves this worker to its successor
  LS_FIELDS(ChiefDisconnected, reason, bad_token, handed_over)
};

// A chief of this term answered a heartbeat, and its loop was responsive.
struct BeatAnswered {
  Term term = 0;
  LS_FIELDS(BeatAnswered, term)
};

// A command arrived on the current stream. The core checks it against (term, generation).
struct CommandReceived {
  ChiefFence fence;
  ChiefCommand command;
  LS_FIELDS(CommandReceived, fence, command)
};

// Answers to the actions MakeKernelPlan, PrepareReplica and TestConnections. The core forwards them to the chief, and
// keeps Ready for the next Hello.
struct PlanFinished {
  PlanMade result;
  LS_FIELDS(PlanFinished, result)
};
struct Prepared {
  Ready result;
  bool may_keep = false;  // there is enough memory for copies of audited states
  LS_FIELDS(Prepared, result, may_keep)
};
struct PreparationFailed {
  PrepareFailed result;
  LS_FIELDS(PreparationFailed, result)
};
struct PeersTestedHere {
  PeersTested result;
  LS_FIELDS(PeersTestedHere, result)
};

// FormCommunicator succeeded.
struct CommunicatorFormed {
  Generation generation;
  LS_FIELDS(CommunicatorFormed, generation)
};

// SyncState succeeded: this replica is at `position`; receivers have checked the digest against the sender's.
// `progress` belongs to the position: the sender's, or in a restore that of SyncState.
struct StateSynced {
  Generation generation;
  Position position;
  Digest digest;
  EvaluationProgress progress;
  LS_FIELDS(StateSynced, generation, position, digest, progress)
};

// Forming, synchronising or a collective failed; the attempt applied nothing. `state_void`: a partial transfer
// overwrote the state, so this replica has none. Also sent for a collective that AbortCollectives ended; then the core
// already waits for ComputingStopped and ignores it.
struct CollectiveFailed {
  Generation generation;
  Incarnation suspect;  // the blamed member; none if the error blames nobody
  bool state_void = false;
  std::string message;
  bool damaged = false;  // the checkpoint to restore differs from the published one
  LS_FIELDS(CollectiveFailed, generation, suspect, state_void, message, damaged)
};

enum class StepOutcome : uint8_t {
  kApplied = 0,    // the step counts (also when on_nan skipped its update)
  kNonFinite = 1,  // `on_nan: stop`: no update; the previous step is saved as at a stop, exit 65
};

// RunStep ended with every bucket reduced and the update done (rule 5). `word` is that of the attempt that counts.
struct StepFinished {
  Generation generation;
  uint64_t step = 0;  // the step just computed; applied only if outcome is kApplied
  StepOutcome outcome = StepOutcome::kApplied;
  ControlWord word;
  StepRecord record;
  std::string message;  // for kNonFinite: which tensor
  LS_FIELDS(StepFinished, generation, step, outcome, word, record, message)
};

// RunSlice ended: one slice of the evaluation of `step` is done.
struct SliceFinished {
  Generation generation;
  uint64_t step = 0;
  ControlWord word;
  SliceResult result;
  LS_FIELDS(SliceFinished, generation, step, word, result)
};

// Answer to WriteSample.
struct TextWritten {
  Generation generation;
  uint64_t step = 0;
  std::string text;
  LS_FIELDS(TextWritten, generation, step, text)
};

// An observation of this replica for a hook, made in `generation`; `content` is an Observed of
// protos/observation.proto.
struct Observed {
  Generation generation;
  uint64_t step = 0;
  std::string hook;
  std::string content;
  LS_FIELDS(Observed, generation, step, hook, content)
};

// Answer to StopComputing: no thread computes or communicates for this generation any more. An update that was running
// has ended, and its StepFinished was sent before this. `state_void`: as in CollectiveFailed.
struct ComputingStopped {
  Generation generation;
  bool state_void = false;
  LS_FIELDS(ComputingStopped, generation, state_void)
};

// Answer to ComputeDigest, for the state at `position`. `kept`: a copy is held, and `took` is the time to make it.
// `keep_failed`: there was not enough memory for a copy.
struct DigestComputed {
  Position position;
  Digest digest;
  bool kept = false;
  absl::Duration took;
  bool keep_failed = false;
  LS_FIELDS(DigestComputed, position, digest, kept, took, keep_failed)
};

// Answer to TakeUpKept. `message` empty: the state is the copy's; else the reason of the failure, and the state is
// unchanged.
struct KeptTakenUp {
  SnapshotId copy;
  std::string message;
  LS_FIELDS(KeptTakenUp, copy, message)
};

// Answer to TakeSnapshot: the copy is in memory and its digest is known. Training may have continued meanwhile; the
// copy was complete before the next update began.
struct SnapshotDone {
  SnapshotId snapshot;
  LS_FIELDS(SnapshotDone, snapshot)
};

// Answers to UploadShare.
struct ShareUploaded {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  LS_FIELDS(ShareUploaded, snapshot, share, shares)
};
struct ShareUploadFailed {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  std::string message;
  LS_FIELDS(ShareUploadFailed, snapshot, share, shares, message)
};

// SIGTERM or another notice (worker/notice). May come at any time and repeatedly; the earliest end counts.
struct TermSignal {
  absl::Duration grace = absl::ZeroDuration();  // until the process is killed; zero: the job's grace period
  LS_FIELDS(TermSignal, grace)
};

// A sample cannot be read any more (worker/data/data_lost.h), which only concerns this worker: it leaves as after a
// TermSignal, so that a state that it alone holds is not lost, and exits with kExitBadData.
struct DataLost {
  std::string message;
  LS_FIELDS(DataLost, message)
};

// This process failed (a failure inside an update voids the replica, rule 5): report it and exit with `exit_code`. With
// kExitPreempted the cause is outside of the process, which exits to be started again.
struct InternalError {
  int32_t exit_code = kExitBug;
  std::string message;
  LS_FIELDS(InternalError, exit_code, message)
};

LS_ONE_OF(Event,
          std::variant<Tick, ChiefConnected, ChiefDisconnected, BeatAnswered, CommandReceived, PlanFinished, Prepared,
                       PreparationFailed, PeersTestedHere, CommunicatorFormed, StateSynced, CollectiveFailed,
                       StepFinished, SliceFinished, TextWritten, ComputingStopped, DigestComputed, KeptTakenUp,
                       SnapshotDone, ShareUploaded, ShareUploadFailed, TermSignal, InternalError, Observed, DataLost>);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_EVENTS_H_
