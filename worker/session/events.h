// Everything the worker's session core can be told. The shell (session_loop) runs the replica, the collectives and the
// gRPC client, and turns what happens into these. Every completion names the generation (and step) it belongs to: the
// core ignores those of a generation that it has left.
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

// Time passed. At least every 500 ms, and at NextDeadline().
struct Tick {
  LS_NO_FIELDS(Tick)
};

// The attempt of Connect succeeded: the stream is open; say Hello.
struct ChiefConnected {
  LS_NO_FIELDS(ChiefConnected)
};

// The attempt failed, or the open stream ended. The worker steps on and tries again every second (rule 10).
struct ChiefDisconnected {
  std::string reason;
  bool bad_token = false;    // the chief refused the token: exit 77
  bool handed_over = false;  // the chief was told to go, and leaves this worker to the next one
  LS_FIELDS(ChiefDisconnected, reason, bad_token, handed_over)
};

// A chief of this term answered a heartbeat, and its loop turned lately.
struct BeatAnswered {
  Term term = 0;
  LS_FIELDS(BeatAnswered, term)
};

// A command came over the current stream. Checked against (term, generation) by the core.
struct CommandReceived {
  ChiefFence fence;
  ChiefCommand command;
  LS_FIELDS(CommandReceived, fence, command)
};

// Answers to the actions MakePlan, Prepare and TestPeers; sent on to the chief, and Ready kept for the next Hello.
struct PlanFinished {
  PlanMade result;
  LS_FIELDS(PlanFinished, result)
};
struct Prepared {
  Ready result;
  bool may_keep = false;  // memory suffices for copies of audited states
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
// `progress` is that of the position: the sender's, or what SyncState gave for a restore.
struct StateSynced {
  Generation generation;
  Position position;
  Digest digest;
  EvaluationProgress progress;
  LS_FIELDS(StateSynced, generation, position, digest, progress)
};

// Forming, synchronising or a collective failed; nothing was applied by the attempt. `state_void`: a half-received
// state was overwritten, so this replica holds none. Also the outcome of a collective that AbortCollectives cut short
// (then the core already waits for ComputingStopped and ignores this).
struct CollectiveFailed {
  Generation generation;
  Incarnation suspect;  // none when the error names nobody
  bool state_void = false;
  std::string message;
  bool damaged = false;  // the checkpoint to restore is not what was published
  LS_FIELDS(CollectiveFailed, generation, suspect, state_void, message, damaged)
};

enum class StepOutcome : uint8_t {
  kApplied = 0,    // the update ran to its end (also when on_nan skipped it: the number advanced)
  kNonFinite = 1,  // `on_nan: stop`: no update; the step before is saved as at a stop, exit 65
};

// RunStep ended with every bucket reduced and the update done (rule 5). `word` is the one of the attempt that counts.
struct StepFinished {
  Generation generation;
  uint64_t step = 0;  // the step just computed; applied only if outcome is kApplied
  StepOutcome outcome = StepOutcome::kApplied;
  ControlWord word;
  StepRecord record;
  std::string message;  // for kNonFinite: which tensor
  LS_FIELDS(StepFinished, generation, step, outcome, word, record, message)
};

// RunSlice ended: `slice` (from 0) of the evaluation of `step` is done.
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

// What this replica observed for a hook while it was of `generation`: an Observed of protos/observation.proto.
struct Observed {
  Generation generation;
  uint64_t step = 0;
  std::string hook;
  std::string content;
  LS_FIELDS(Observed, generation, step, hook, content)
};

// Answer to StopComputing: no thread computes or communicates for this generation any more. If an update was running
// it ran to its end, and its StepFinished came before this. `state_void`: as in CollectiveFailed.
struct ComputingStopped {
  Generation generation;
  bool state_void = false;
  LS_FIELDS(ComputingStopped, generation, state_void)
};

// Answer to ComputeDigest, for the state that stood at `position`. `kept`: a copy is held now, and making it took so
// long. `keep_failed`: memory did not suffice for one.
struct DigestComputed {
  Position position;
  Digest digest;
  bool kept = false;
  absl::Duration took;
  bool keep_failed = false;
  LS_FIELDS(DigestComputed, position, digest, kept, took, keep_failed)
};

// Answer to TakeUpKept. `message`: why not, and the state is what it was; empty: it is the copy's.
struct KeptTakenUp {
  SnapshotId copy;
  std::string message;
  LS_FIELDS(KeptTakenUp, copy, message)
};

// Answer to TakeSnapshot: the copy stands in memory and its digest is known. Training may have gone on meanwhile; the
// copy itself was complete before the next update began.
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

// SIGTERM, or another notice (worker/notice). May come at any time and more than once; the earliest end counts.
struct TermSignal {
  absl::Duration grace = absl::ZeroDuration();  // until the process is killed; zero: the job's grace period
  LS_FIELDS(TermSignal, grace)
};

// A sample cannot be read any more (worker/data/data_lost.h), by no fault of the others: this worker leaves as after a
// TermSignal, so that nothing is lost that it alone holds, and exits with kExitBadData.
struct DataLost {
  std::string message;
  LS_FIELDS(DataLost, message)
};

// Something of our own broke (a failure inside an update voids the replica, rule 5): report, exit with `exit_code`.
// With kExitPreempted this process can do nothing more, by no fault of its own: it leaves to be started again.
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
