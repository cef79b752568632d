// Everything the chief's core can decide. The shell carries these out in order, without policy of its own; durability
// is an action, its completion an event.
//
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_CORE_ACTIONS_H_
#define LOCKSTEP_CHIEF_CORE_ACTIONS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/events.h"
#include "chief/core/policy.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/variant/one_of.h"

namespace lockstep::chief {

// Queue this command on the session; dropped when the session is gone.
struct Send {
  SessionId session = 0;
  ChiefFence fence;
  ChiefCommand command;
  std::string reason;
  LS_FIELDS(Send, session, fence, command, reason)
};

// The same command on each of these sessions.
struct SendToAll {
  std::vector<SessionId> sessions;
  ChiefFence fence;
  ChiefCommand command;
  std::string reason;
  LS_FIELDS(SendToAll, sessions, fence, command, reason)
};

// Flush what was queued, then end the stream.
struct CloseSession {
  SessionId session = 0;
  std::string reason;
  LS_FIELDS(CloseSession, session, reason)
};

// Store the kernel plan under its hash and name it as the job's. Answered by PlanStored or StorageFailed.
struct StorePlan {
  std::string plan_hash;
  std::string plan;
  Digest data_digest;  // of the data it was made with, stored beside it
  std::string reason;
  LS_FIELDS(StorePlan, plan_hash, plan, data_digest, reason)
};

// From now on accept shares of this state (rule 19). Shares that arrive for no open save are refused.
struct OpenSave {
  SnapshotId snapshot;
  uint32_t shares = 0;
  std::string reason;
  LS_FIELDS(OpenSave, snapshot, shares, reason)
};

// Drop what was received of this save; accept no more of it.
struct AbandonSave {
  SnapshotId snapshot;
  std::string reason;
  LS_FIELDS(AbandonSave, snapshot, reason)
};

// Every share is stored: recompute the digest of the state from what was received and make all of it durable. Answered
// by ManifestStored, ShardBroken (a share does not verify) or StorageFailed.
struct StoreManifest {
  SnapshotId snapshot;
  uint32_t shares = 0;
  std::string plan_hash;
  bool audited = false;   // every member of its generation reported this digest, be it the only one (rule 22)
  bool evaluated = true;  // the evaluation due at this step, if one is, was completed
  EvaluationLedger ledger;
  absl::Duration trained_for;        // time the job has been stepping, for `duration: 2h`
  uint64_t audit_floor = 0;          // the newest audited checkpoint up to this step stays (audit_floor.h)
  std::vector<Incarnation> members;  // of the generation that computed it, by rank
  std::string reason;
  LS_FIELDS(StoreManifest, snapshot, shares, plan_hash, audited, evaluated, ledger, trained_for, audit_floor, members,
            reason)
};

// Manifest last, then the one rename into place, then retention (chief/checkpoint/manifest_store.h). Answered by
// Published, StorageFailed or TermLost.
struct PublishCommit {
  SnapshotId snapshot;
  std::string reason;
  LS_FIELDS(PublishCommit, snapshot, reason)
};

// The checkpoint was published before the evaluation of its step was done, and now holds it: its manifest is replaced
// by one with this ledger. Answered as PublishCommit.
struct AmendManifest {
  SnapshotId snapshot;
  EvaluationLedger ledger;
  std::string reason;
  LS_FIELDS(AmendManifest, snapshot, ledger, reason)
};

// Replicas differ. Make it durable that the job goes on under `lineage` from its newest audited checkpoint, then set
// every newer one aside (chief/checkpoint/manifest_store.h); once more where that was begun. Answered by
// RepairRecorded, RepairFailed or TermLost.
struct RecordRepair {
  Lineage lineage;                 // of the job
  uint64_t found_at = 0;           // the step at which they differ
  std::vector<std::string> hosts;  // of those in the minority
  std::string reason;
  LS_FIELDS(RecordRepair, lineage, found_at, hosts, reason)
};

// The way back that RepairRecorded made durable ends at `step`: what was told of later steps is told again, under
// `lineage`. `from_copy`: that is later than the checkpoint, and workers kept it in memory.
struct WentBack {
  Lineage lineage;
  uint64_t step = 0;
  bool from_copy = false;
  uint64_t found_at = 0;           // the step at which replicas differed
  std::vector<std::string> names;  // of the workers in the minority
  std::vector<std::string> hosts;  // theirs
  EvaluationLedger ledger;         // of the checkpoint
  std::string reason;
  LS_FIELDS(WentBack, lineage, step, from_copy, found_at, names, hosts, ledger, reason)
};

// Steps up to `step` are agreed by every member. Records are of agreed steps only, in order.
struct StepsAgreed {
  Lineage lineage;
  uint64_t step = 0;
  std::vector<StepRecord> records;
  LS_FIELDS(StepsAgreed, lineage, step, records)
};

// The evaluation of an agreed step is complete: all slices, in order.
struct EvaluationDone {
  Lineage lineage;
  uint64_t step = 0;
  std::vector<SliceResult> slices;
  LS_FIELDS(EvaluationDone, lineage, step, slices)
};

// What the model wrote after the evaluation of `step`.
struct SampleTold {
  Lineage lineage;
  uint64_t step = 0;
  std::string text;
  LS_FIELDS(SampleTold, lineage, step, text)
};

// What a worker observed for a hook.
struct ObservationTold {
  Lineage lineage;
  uint64_t step = 0;
  std::string hook;
  std::string content;
  LS_FIELDS(ObservationTold, lineage, step, hook, content)
};

enum class WorkerChange : uint8_t {
  kJoined = 0,          // first time in a generation
  kLost = 1,            // reset, silence, SIGKILL: spends nothing
  kPreempted = 2,       // left on SIGTERM
  kCrashed = 3,         // error report or crash signal: spends the budget. An Announce says why
  kRefused = 4,         // not admitted. An Announce says why
  kDigestMismatch = 5,  // its state differs from that of the others: it ends, to be started again
};

// For the worker statistics and the event log.
struct WorkerChanged {
  std::string name;
  Incarnation incarnation;
  WorkerChange change = WorkerChange::kJoined;
  std::string reason;
  LS_FIELDS(WorkerChanged, name, incarnation, change, reason)
};

// Cumulative counters that a worker reported.
struct WorkerCounters {
  std::string name;
  std::vector<NamedValue> stats;
  LS_FIELDS(WorkerCounters, name, stats)
};

enum class Level : uint8_t { kInfo = 0, kWarning = 1, kError = 2 };

// One line for people; the reason of a decision.
struct Announce {
  Level level = Level::kInfo;
  std::string text;
  LS_FIELDS(Announce, level, text)
};

// Answers DrainRequested. A request that is refused changes nothing; else `drains`, all that hold from now on, are made
// durable before the answer is given, so that the next chief keeps to them.
struct DrainDecided {
  uint64_t request = 0;
  bool refused = false;
  std::vector<std::string> lines;  // for people: why it is refused, or what becomes of whom
  std::vector<Drain> drains;
  LS_FIELDS(DrainDecided, request, refused, lines, drains)
};

// The chief's work is over. Everything queued on sessions is flushed first.
struct Exit {
  int32_t code = 0;
  std::string reason;
  bool handed_over = false;  // the workers wait for the next chief
  LS_FIELDS(Exit, code, reason, handed_over)
};

LS_ONE_OF(Action,
          std::variant<Send, SendToAll, CloseSession, StorePlan, OpenSave, AbandonSave, StoreManifest, PublishCommit,
                       AmendManifest, RecordRepair, WentBack, StepsAgreed, EvaluationDone, SampleTold, WorkerChanged,
                       WorkerCounters, Announce, DrainDecided, Exit, ObservationTold>);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_ACTIONS_H_
