// Everything that the chief's core can decide. The shell carries actions out in the order in which they are returned
// and adds no policy of its own. Making something durable is an action; its completion is an event.
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

// Queue this command on the session; it is dropped if the session is gone.
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

// Flush the commands that are queued on the session, then end its stream.
struct CloseSession {
  SessionId session = 0;
  std::string reason;
  LS_FIELDS(CloseSession, session, reason)
};

// Store the kernel plan under its hash and name it as the job's. Answered by PlanStored or StorageFailed.
struct StorePlan {
  std::string plan_hash;
  std::string plan;
  Digest data_digest;  // of the data that the plan was made with; stored beside it
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

// Delete the shares that were received for this save and accept no more of them.
struct AbandonSave {
  SnapshotId snapshot;
  std::string reason;
  LS_FIELDS(AbandonSave, snapshot, reason)
};

// Every share is stored: recompute the digest of the state from what was received and make all of it durable. Answered
// by ManifestStored, ShareBroken (a share does not verify) or StorageFailed.
struct StoreManifest {
  SnapshotId snapshot;
  uint32_t shares = 0;
  std::string plan_hash;
  bool audited = false;   // every member of its generation reported this digest, even if it has one member (rule 22)
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

// Replace the manifest of a published checkpoint by one with this ledger: the checkpoint was published before the
// evaluation of its step was complete. Answered as PublishCommit.
struct AmendManifest {
  SnapshotId snapshot;
  EvaluationLedger ledger;
  std::string reason;
  LS_FIELDS(AmendManifest, snapshot, ledger, reason)
};

// Replicas differ. Record durably that the job continues under `lineage` from its newest audited checkpoint, then set
// every newer checkpoint aside (chief/checkpoint/manifest_store.h). Idempotent: a repair that was begun is finished.
// Answered by RepairRecorded, RepairFailed or TermLost.
struct RecordRepair {
  Lineage lineage;                 // of the job
  uint64_t found_at = 0;           // the step at which they differ
  std::vector<std::string> hosts;  // of the workers in the minority
  std::string reason;
  LS_FIELDS(RecordRepair, lineage, found_at, hosts, reason)
};

// A repair is over: the job continues from the state of `step`, and records and evaluations of later steps will come
// again, under `lineage`. `from_copy`: the state is a copy that workers kept in memory, newer than the checkpoint.
struct WentBack {
  Lineage lineage;
  uint64_t step = 0;
  bool from_copy = false;
  uint64_t found_at = 0;           // the step at which replicas differed
  std::vector<std::string> names;  // of the workers in the minority
  std::vector<std::string> hosts;  // of these workers
  EvaluationLedger ledger;         // of the checkpoint
  std::string reason;
  LS_FIELDS(WentBack, lineage, step, from_copy, found_at, names, hosts, ledger, reason)
};

// Every member has applied the steps up to `step`. `records` are those of steps that are agreed since the last such
// action, in order.
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

// The text that the model generated after the evaluation of `step`.
struct RecordSample {
  Lineage lineage;
  uint64_t step = 0;
  std::string text;
  LS_FIELDS(RecordSample, lineage, step, text)
};

// The values that a worker observed for a hook.
struct RecordObservation {
  Lineage lineage;
  uint64_t step = 0;
  std::string hook;
  std::string content;
  LS_FIELDS(RecordObservation, lineage, step, hook, content)
};

enum class WorkerChange : uint8_t {
  kJoined = 0,          // first time in a generation
  kLost = 1,            // reset, silence, SIGKILL: spends nothing
  kPreempted = 2,       // left on SIGTERM
  kCrashed = 3,         // error report or crash signal: spends the budget. An Announce says why
  kRefused = 4,         // not admitted. An Announce says why
  kDigestMismatch = 5,  // its state is in the minority: the process ends and is started again
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

// Answers DrainRequested. A refused request changes nothing. Otherwise `drains`, the complete list that is in force
// from now on, is made durable before the request is answered, so that the next chief enforces it too.
struct DrainDecided {
  uint64_t request = 0;
  bool refused = false;
  std::vector<std::string> lines;  // for people: why the request is refused, or what each target will do
  std::vector<Drain> drains;
  LS_FIELDS(DrainDecided, request, refused, lines, drains)
};

// The chief's work is over. Everything queued on sessions is flushed first.
struct Exit {
  int32_t code = 0;
  std::string reason;
  bool handed_over = false;  // the job is not over: its workers wait for the next chief
  LS_FIELDS(Exit, code, reason, handed_over)
};

LS_ONE_OF(Action,
          std::variant<Send, SendToAll, CloseSession, StorePlan, OpenSave, AbandonSave, StoreManifest, PublishCommit,
                       AmendManifest, RecordRepair, WentBack, StepsAgreed, EvaluationDone, RecordSample, WorkerChanged,
                       WorkerCounters, Announce, DrainDecided, Exit, RecordObservation>);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_ACTIONS_H_
