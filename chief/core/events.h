// The complete input of the chief's core. The shell turns gRPC messages, timers and storage completions into these
// events; nothing else reaches the core.
//
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_CORE_EVENTS_H_
#define LOCKSTEP_CHIEF_CORE_EVENTS_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/variant/one_of.h"

namespace lockstep::chief {

// One stream of one worker, numbered by the shell in order of opening; a number is never reused.
using SessionId = uint64_t;

// Time passed. The shell sends it at NextDeadline(), behind everything that its queue held at that instant (rule 16).
// So a worker whose message has arrived is never judged late, and a stream of messages cannot postpone a judgement.
struct Tick {
  LS_NO_FIELDS(Tick)
};

// A message on a session. The first one of a session is its Hello.
struct FromWorker {
  SessionId session = 0;
  WorkerFence fence;
  WorkerMessage message;
  LS_FIELDS(FromWorker, session, fence, message)
};

// The stream ended, for any reason; also after CloseSession.
struct SessionClosed {
  SessionId session = 0;
  std::string reason;
  LS_FIELDS(SessionClosed, session, reason)
};

// A heartbeat came on its own channel; the shell has answered it. `doing`: what the computing thread has been busy with
// for a while, for people only; empty if nothing takes long.
struct HeartbeatReceived {
  WorkerFence fence;
  Heartbeat heartbeat;
  std::string doing;
  LS_FIELDS(HeartbeatReceived, fence, heartbeat, doing)
};

// StorePlan is durable (its file is fsynced under its final name).
struct PlanStored {
  std::string plan_hash;
  LS_FIELDS(PlanStored, plan_hash)
};

// A share of an open save has been received, checked and fsynced.
struct ShareStored {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  LS_FIELDS(ShareStored, snapshot, share, shares)
};

// The storage lacks the frozen tensors of an open save, whose last share is for them: a worker must send it. If the
// storage has them, it emits ShareStored instead.
struct FrozenShareMissing {
  SnapshotId snapshot;
  LS_FIELDS(FrozenShareMissing, snapshot)
};

// A share was lost in transit or refused: a broken stream or a bad checksum. This is not a failure of the storage.
struct ShareBroken {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  std::string message;
  Incarnation sender;
  bool wrong = false;  // the sender's bytes are not the announced ones; else its stream broke
  LS_FIELDS(ShareBroken, snapshot, share, shares, message, sender, wrong)
};

// StoreManifest is done: everything is fsynced in staging. `recomputed` is the digest of the state as computed from the
// received shards (rule 20).
struct ManifestStored {
  SnapshotId snapshot;
  Digest recomputed;
  LS_FIELDS(ManifestStored, snapshot, recomputed)
};

// PublishCommit is durable: the checkpoint is renamed into place and its parent is fsynced, or an equal checkpoint
// stood there already (rule 13).
struct Published {
  SnapshotId snapshot;
  LS_FIELDS(Published, snapshot)
};

// The storage refused an action. `snapshot` names the save; it is empty for the plan. `may_pass`: a later attempt may
// succeed (full disk, read-only file system, I/O error); otherwise the bytes received or stored are not the expected
// ones.
struct StorageFailed {
  SnapshotId snapshot;
  std::string message;
  bool may_pass = false;
  LS_FIELDS(StorageFailed, snapshot, message, may_pass)
};

// RecordRepair is durable, and the checkpoints above `checkpoint` are set aside. The other fields are as in
// RecoveredState.
struct RepairRecorded {
  Lineage lineage;
  SnapshotId checkpoint;  // of an ancestor of `lineage`
  absl::Duration trained_for;
  bool evaluated = true;
  EvaluationLedger ledger;
  uint64_t set_aside_from = 0;  // the lowest step that was set aside; 0: none was
  LS_FIELDS(RepairRecorded, lineage, checkpoint, trained_for, evaluated, ledger, set_aside_from)
};

// The storage refused RecordRepair, or no audited checkpoint is left. `may_pass`: as in StorageFailed.
struct RepairFailed {
  Lineage lineage;
  std::string message;
  bool may_pass = false;
  LS_FIELDS(RepairFailed, lineage, message, may_pass)
};

// The storage says that a newer term was claimed: this chief is fenced.
struct TermLost {
  Term newer = 0;
  LS_FIELDS(TermLost, newer)
};

// A supervisor reports how a worker process ended. `signal` 0: it exited with `exit_code`.
struct ProcessExited {
  std::string name;  // the worker's name, as given by --name or Welcome
  int32_t signal = 0;
  int32_t exit_code = 0;
  bool last = false;  // every worker of the supervisor has ended and none is restarted: the job ends with this code
  std::string cause;  // in the process's own words; empty when it gave none
  LS_FIELDS(ProcessExited, name, signal, exit_code, last, cause)
};

// `lockstep stop`, or a signal to the chief.
struct StopRequested {
  std::string by;
  int32_t exit_code = 0;    // of all processes, once the save is published: 0 for `lockstep stop`, 75 for a signal
  bool hands_over = false;  // only the chief exits; the workers wait for its successor
  LS_FIELDS(StopRequested, by, exit_code, hands_over)
};

// `lockstep drain`: workers with these names, or on these hosts, leave at a boundary as on SIGTERM, and their
// successors are turned away. With `undo` they may come back. Answered by DrainDecided.
struct DrainRequested {
  uint64_t request = 0;  // numbered by the shell
  std::vector<std::string> targets;
  bool undo = false;
  absl::Duration within = absl::InfiniteDuration();  // the time in which they must be gone
  std::string by;
  LS_FIELDS(DrainRequested, request, targets, undo, within, by)
};

// Many events are queued. The core takes in those up to BurstEnds, or up to the next Tick, before it decides once what
// follows from all of them. A thousand answers that arrive together then cost one decision instead of a thousand.
struct BurstBegins {
  LS_NO_FIELDS(BurstBegins)
};
struct BurstEnds {
  LS_NO_FIELDS(BurstEnds)
};

LS_ONE_OF(Event,
          std::variant<Tick, FromWorker, SessionClosed, HeartbeatReceived, PlanStored, ShareStored, ShareBroken,
                       ManifestStored, Published, StorageFailed, RepairRecorded, RepairFailed, TermLost, ProcessExited,
                       StopRequested, DrainRequested, BurstBegins, BurstEnds, FrozenShareMissing>);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_EVENTS_H_
