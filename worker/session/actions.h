// The actions of the worker's session core. The shell carries them out in order and never blocks on one: long-running
// work goes to other threads and ends with an event of events.h, given after the arrow below.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_SESSION_ACTIONS_H_
#define LOCKSTEP_WORKER_SESSION_ACTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/control.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/variant/one_of.h"

namespace lockstep::worker {

// Open the session stream (one attempt). → ChiefConnected or ChiefDisconnected
struct Connect {
  std::string reason;
  LS_FIELDS(Connect, reason)
};

// End the stream; no ChiefDisconnected follows.
struct Disconnect {
  std::string reason;
  LS_FIELDS(Disconnect, reason)
};

// Queue this message on the stream; it is dropped when there is no stream.
struct Send {
  WorkerFence fence;
  WorkerMessage message;
  std::string reason;
  LS_FIELDS(Send, fence, message, reason)
};

// Set the contents of the following heartbeats.
struct SetPhase {
  WorkerFence fence;
  Heartbeat::Phase phase = Heartbeat::Phase::kIdle;
  Position position;
  LS_FIELDS(SetPhase, fence, phase, position)
};

// Fetch the metagraph, choose the kernels, record the probe. → PlanFinished or PreparationFailed
struct MakeKernelPlan {
  std::string metagraph;
  std::string reason;
  LS_FIELDS(MakeKernelPlan, metagraph, reason)
};

// Fetch, plan, allocate, warm up, probe, hash the data. If that was done already with the same arguments, only the
// event is repeated; if only the settings differ, the state is kept. → Prepared or PreparationFailed
struct PrepareReplica {
  std::string metagraph;
  std::string plan_hash;
  Digest data_digest;
  Digest settings;
  std::string reason;
  LS_FIELDS(PrepareReplica, metagraph, plan_hash, data_digest, settings, reason)
};

// Try a connection to each peer. → PeersTestedHere
struct TestConnections {
  uint64_t round = 0;
  std::vector<Member> peers;
  LS_FIELDS(TestConnections, round, peers)
};

// Form the communicator of this generation as rank `rank` of `members`. → CommunicatorFormed or CollectiveFailed
struct FormCommunicator {
  Generation generation;
  std::vector<Member> members;
  uint32_t rank = 0;
  std::string reason;
  LS_FIELDS(FormCommunicator, generation, members, rank, reason)
};

// Deliver a StorePush to the rendezvous store of a generation that is being formed.
struct DeliverStore {
  Generation generation;
  std::string key;
  std::string value;
  LS_FIELDS(DeliverStore, generation, key, value)
};

// Bring every member to `position` over the new communicator (a collective: every member runs it with equal arguments).
// Live: source_rank sends its state and its `progress` to `receivers`. Restore: each rank fetches share rank/N of that
// checkpoint from the chief, and all broadcast. Receivers check the digest. → StateSynced or CollectiveFailed
struct SyncState {
  Generation generation;
  Lineage lineage;
  Position position;
  std::optional<SnapshotId> restore;
  uint32_t source_rank = 0;
  std::vector<uint32_t> receivers;
  EvaluationProgress progress;  // live: this replica's, if it is the source; restore: the checkpoint's
  std::string reason;
  LS_FIELDS(SyncState, generation, lineage, position, restore, source_rank, receivers, progress, reason)
};

// Compute step `step` (the state is at step - 1); `slot` is this rank's contribution to the control word. →
// StepFinished or CollectiveFailed
struct RunStep {
  Generation generation;
  uint64_t step = 0;
  uint64_t rate_cuts = 0;  // EvaluationLedger::rate_cuts of the state
  ControlContribution slot;
  LS_FIELDS(RunStep, generation, step, rate_cuts, slot)
};

// Evaluate slice `slice` (from 0) of the state at `step`. → SliceFinished or CollectiveFailed
struct RunSlice {
  Generation generation;
  uint64_t step = 0;
  uint64_t slice = 0;
  ControlContribution slot;
  LS_FIELDS(RunSlice, generation, step, slice, slot)
};

// Generate a text sample with the state at `step`. → TextWritten; no event if it was cancelled
struct WriteSample {
  Generation generation;
  uint64_t step = 0;
  LS_FIELDS(WriteSample, generation, step)
};

// Cancel all samples, running or queued: the next boundary has work to do.
struct CancelSample {
  std::string reason;
  LS_FIELDS(CancelSample, reason)
};

// Make every pending collective of this generation fail now, the forming of its communicator included. Does not affect
// anything else: an update that has begun runs to its end.
struct AbortCollectives {
  Generation generation;
  std::string reason;
  LS_FIELDS(AbortCollectives, generation, reason)
};

// Start no new work for this generation and report when nothing is running any more. → ComputingStopped
struct StopComputing {
  Generation generation;
  std::string reason;
  LS_FIELDS(StopComputing, generation, reason)
};

// Compute the digest of the state, which is at `position`. With `keep_as`, also keep a copy in memory until DropKept,
// under the name SnapshotId{keep_as, step, digest}. → DigestComputed
struct ComputeDigest {
  Position position;
  std::string reason;
  Lineage keep_as;
  LS_FIELDS(ComputeDigest, position, reason, keep_as)
};

// Load the state from a kept copy, after verifying that its digest is still the one in its name. → KeptTakenUp
struct TakeUpKept {
  SnapshotId copy;
  std::string reason;
  LS_FIELDS(TakeUpKept, copy, reason)
};

// Free a kept copy.
struct DropKept {
  SnapshotId copy;
  std::string reason;
  LS_FIELDS(DropKept, copy, reason)
};

// Free the memory that only steps need, if the engine considers that worthwhile. The next FormCommunicator allocates it
// again.
struct ReleaseMemory {
  std::string reason;
  LS_FIELDS(ReleaseMemory, reason)
};

// Copy the state; no step is running. A RunStep may follow at once: its update waits for the copy, not for the digest.
// `last`: no step follows. → SnapshotDone
struct TakeSnapshot {
  Lineage lineage;
  uint64_t step = 0;
  std::string reason;
  bool last = false;
  LS_FIELDS(TakeSnapshot, lineage, step, reason, last)
};

// Stream this share of a held snapshot to the chief. → ShareUploaded or ShareUploadFailed
struct UploadShare {
  WorkerFence fence;
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  LS_FIELDS(UploadShare, fence, snapshot, share, shares)
};

// Free a held snapshot and cancel its upload.
struct DropSnapshot {
  SnapshotId snapshot;
  std::string reason;
  LS_FIELDS(DropSnapshot, snapshot, reason)
};

// Log one line for people: the reason of a decision.
struct Announce {
  bool warning = false;
  std::string text;
  LS_FIELDS(Announce, warning, text)
};

// End the process after flushing the stream's queue (for at most one second). `stuck`: the engine thread does not stop;
// the shell reports where it hangs.
struct Exit {
  int32_t code = 0;
  std::string reason;
  bool stuck = false;
  LS_FIELDS(Exit, code, reason, stuck)
};

LS_ONE_OF(Action, std::variant<Connect, Disconnect, Send, SetPhase, MakeKernelPlan, PrepareReplica, TestConnections,
                               FormCommunicator, DeliverStore, SyncState, RunStep, RunSlice, WriteSample, CancelSample,
                               AbortCollectives, StopComputing, ComputeDigest, TakeUpKept, DropKept, ReleaseMemory,
                               TakeSnapshot, UploadShare, DropSnapshot, Announce, Exit>);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_ACTIONS_H_
