// Everything the worker's session core can decide. The shell carries these out in order; none of them blocks it: what
// takes time runs elsewhere and ends in an event of events.h.
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

// Open the session stream (one attempt). Answered by ChiefConnected or ChiefDisconnected.
struct Connect {
  std::string reason;
  LS_FIELDS(Connect, reason)
};

// End the stream; no ChiefDisconnected follows.
struct Disconnect {
  std::string reason;
  LS_FIELDS(Disconnect, reason)
};

// Queue this message on the stream; dropped when there is none.
struct Send {
  WorkerFence fence;
  WorkerMessage message;
  std::string reason;
  LS_FIELDS(Send, fence, message, reason)
};

// What the heartbeat thread carries from here on.
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

// Fetch, plan, allocate, warm up, probe, hash the data. A no-op with the same answer when that stands already;
// with other settings only, the state stays.
// → Prepared or PreparationFailed
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

// Form the communicator of this generation, with `rank` of `members`. → CommunicatorFormed or CollectiveFailed
struct FormCommunicator {
  Generation generation;
  std::vector<Member> members;
  uint32_t rank = 0;
  std::string reason;
  LS_FIELDS(FormCommunicator, generation, members, rank, reason)
};

// A StorePush for the store of a generation that is being formed.
struct DeliverStore {
  Generation generation;
  std::string key;
  std::string value;
  LS_FIELDS(DeliverStore, generation, key, value)
};

// Bring every member to `position` over the new communicator (collective: every member runs it with equal arguments).
// Live: source_rank sends its state, and `progress` beside it, to `receivers`. Restore: each rank fetches share rank/N
// of that checkpoint from the chief, and all broadcast. Receivers check the digest. → StateSynced or CollectiveFailed
struct SyncState {
  Generation generation;
  Lineage lineage;
  Position position;
  std::optional<SnapshotId> restore;
  uint32_t source_rank = 0;
  std::vector<uint32_t> receivers;
  EvaluationProgress progress;  // of this replica where it is the source, of the checkpoint in a restore
  std::string reason;
  LS_FIELDS(SyncState, generation, lineage, position, restore, source_rank, receivers, progress, reason)
};

// Compute step `step` (the state stands at step - 1) with this slot in its last bucket. → StepFinished or
// CollectiveFailed
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

// Let the model write by the state as it stands at `step`. → TextWritten; nothing when it was cut short
struct WriteSample {
  Generation generation;
  uint64_t step = 0;
  LS_FIELDS(WriteSample, generation, step)
};

// No sample that was begun or waits is worth more time: something has to happen at the next boundary.
struct CancelSample {
  std::string reason;
  LS_FIELDS(CancelSample, reason)
};

// Make every pending collective of this generation fail now (also one that is still being formed). Touches collectives
// only: an update that began runs to its end.
struct AbortCollectives {
  Generation generation;
  std::string reason;
  LS_FIELDS(AbortCollectives, generation, reason)
};

// Start nothing new for this generation and say when nothing runs any more. → ComputingStopped
struct StopComputing {
  Generation generation;
  std::string reason;
  LS_FIELDS(StopComputing, generation, reason)
};

// Digest of the state as it stands at `position`. With `keep_as` a copy is kept in memory, as SnapshotId{keep_as, step,
// digest}, until DropKept. → DigestComputed
struct ComputeDigest {
  Position position;
  std::string reason;
  Lineage keep_as;
  LS_FIELDS(ComputeDigest, position, reason, keep_as)
};

// The kept copy becomes the state, if its digest is still the one in its name. → KeptTakenUp
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

// Give back the memory that only steps need, where it is worth having (the engine knows). The next FormCommunicator
// takes it again.
struct ReleaseMemory {
  std::string reason;
  LS_FIELDS(ReleaseMemory, reason)
};

// Copy the state as it stands (nothing is stepping; a following RunStep may be given at once and waits for the copy,
// not for the digest). `last`: no step follows. → SnapshotDone
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

// Free a held snapshot; an upload of it is cancelled.
struct DropSnapshot {
  SnapshotId snapshot;
  std::string reason;
  LS_FIELDS(DropSnapshot, snapshot, reason)
};

// One line for people; the reason of a decision.
struct Announce {
  bool warning = false;
  std::string text;
  LS_FIELDS(Announce, warning, text)
};

// End the process. What is queued on the stream is flushed first (at most one second). `stuck`: a thread that computes
// does not stop; its last words are to say at what.
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
