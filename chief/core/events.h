// Everything the chief's core can be told. The shell turns gRPC messages, timers and storage completions into these and
// nothing else reaches the core.
//
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_CORE_EVENTS_H_
#define LOCKSTEP_CHIEF_CORE_EVENTS_H_

#include <cstdint>
#include <string>
#include <variant>

#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

// One stream of one worker, numbered by the shell in the order of their opening; never used again.
using SessionId = uint64_t;

// Time passed. At NextDeadline(), after everything that lay in the shell's queue at that instant (rule 16): nobody is
// taken for late whose message had come, and no stream of messages puts a judgement off.
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

// The stream ended, for whatever reason. Also comes after CloseSession.
struct SessionClosed {
  SessionId session = 0;
  std::string reason;
  LS_FIELDS(SessionClosed, session, reason)
};

// On the heartbeat channel; the shell has answered it. `doing`: what the thread that computes has been at for a while,
// for people only; empty: nothing for long.
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
struct ShardStored {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  LS_FIELDS(ShardStored, snapshot, share, shares)
};

// A share on its way was lost or refused: a broken stream, a bad checksum. Not a failure of the storage.
struct ShardBroken {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  std::string message;
  Incarnation sender;
  LS_FIELDS(ShardBroken, snapshot, share, shares, message, sender)
};

// StoreManifest is done: everything is fsynced in staging. `recomputed` is the digest of the state as computed from the
// received shards (rule 20).
struct ManifestStored {
  SnapshotId snapshot;
  Digest recomputed;
  LS_FIELDS(ManifestStored, snapshot, recomputed)
};

// PublishCommit is durable: renamed, parent fsynced; or an equal checkpoint already stood there (rule 13).
struct Published {
  SnapshotId snapshot;
  LS_FIELDS(Published, snapshot)
};

// The storage refused something. For a save `snapshot` names it; for the plan it is empty. `may_pass`: a later attempt
// may succeed (disk full, read-only, an I/O error); else what arrived or stands there is not what it should be.
struct StorageFailed {
  SnapshotId snapshot;
  std::string message;
  bool may_pass = false;
  LS_FIELDS(StorageFailed, snapshot, message, may_pass)
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
  bool last = false;  // every worker of the supervisor has ended, and none is started again: the job ends so too
  std::string cause;  // in the process's own words; empty when it gave none
  LS_FIELDS(ProcessExited, name, signal, exit_code, last, cause)
};

// `lockstep stop`, or SIGTERM to the chief.
struct StopRequested {
  std::string by;
  int32_t exit_code = 0;  // of everybody, once the save is published: 0 for `lockstep stop`, 75 for a signal
  LS_FIELDS(StopRequested, by, exit_code)
};

using Event = std::variant<Tick, FromWorker, SessionClosed, HeartbeatReceived, PlanStored, ShardStored, ShardBroken,
                           ManifestStored, Published, StorageFailed, TermLost, ProcessExited, StopRequested>;

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_EVENTS_H_
