// The messages between workers and the chief, as plain structs. Both pure cores and the simulation use these;
// common/protocol/wire.h turns them into protos/session.proto and back. Every WorkerMessage travels with a WorkerFence,
// every ChiefCommand with a ChiefFence (ids.h); a command about a generation has it in its fence, a worker's message as
// its first field. A mismatch is answered (Fenced, CommandRejected), never silently dropped; a first Hello is exempt.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_MESSAGES_H_
#define LOCKSTEP_COMMON_PROTOCOL_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/control.h"
#include "common/protocol/evaluation.h"
#include "common/protocol/fields.h"
#include "common/protocol/heartbeat.h"
#include "common/protocol/ids.h"
#include "common/protocol/kept_state.h"
#include "common/protocol/observation.h"
#include "common/protocol/protocol_number.h"
#include "common/protocol/training_policy.h"
#include "common/variant/one_of.h"

namespace lockstep {

// ---- worker → chief -----------------------------------------------------------------------------------------------
// The worker is ready to join: planned, allocated, warmed up, probed (rules 11, 31).
struct Ready {
  std::string plan_hash;
  Digest data_digest;           // over the job's data files (rule 32)
  absl::Duration longest_node;  // of the plan: added to the time a verdict may take to be acknowledged (rule 8)
  uint64_t state_bytes = 0;
  Digest settings;     // TrainingPolicy::settings of the job that it was made from
  std::string device;  // what it computes on, for people: "cpu avx2", "cuda:1 NVIDIA H200"
  LS_FIELDS(Ready, plan_hash, data_digest, longest_node, state_bytes, settings, device)
};

enum class Activity : uint8_t {
  kIdle = 0,      // no generation (new, preparing, ready, or parked with or without state)
  kRunning = 1,   // in `generation`: stepping, evaluating, or waiting at one of its boundaries
  kFinished = 2,  // at the last boundary (end or stop) with its snapshot, waiting for Done
};

// First message on every new session.
struct Hello {
  std::string job;             // the job that this worker was given or learnt; empty: any
  std::string preferred_name;  // empty: the chief chooses
  std::string host;
  std::string peer_address;  // where peers connect, host:port
  std::string device;        // the device setting, for people: "auto", "cuda:1"
  Term highest_term = 0;     // the highest term it ever followed: an older chief must end (76)
  bool has_state = false;
  Lineage lineage;          // of its state
  Position position;        // of its state
  EvaluationLedger ledger;  // of its state
  Activity activity = Activity::kIdle;
  Generation generation;               // unless idle: the generation that it runs,
  std::vector<Member> members;         // its members in rank order, if this is one of the lowest ranks,
  Digest members_digest;               // and from every member their digest (member_list.h; rule 14)
  std::vector<SnapshotId> snapshots;   // still held in memory
  bool leaving = false;                // SIGTERM came
  std::optional<Ready> ready;          // kept from before, when it still holds
  std::vector<KeptState> kept;         // at most kMaxKeptStates
  std::optional<StatesDiffer> differ;  // the newest difference that it was told of
  uint64_t protocol = kProtocol;
  LS_FIELDS(Hello, job, preferred_name, host, peer_address, device, highest_term, has_state, lineage, position, ledger,
            activity, generation, members, members_digest, snapshots, leaving, ready, kept, differ, protocol)
};

// Answer to MakePlan: the kernel plan of the job and the recorded probe, in one blob (rule 30).
struct PlanMade {
  std::string plan_hash;
  std::string plan;  // bytes, at most kMaxPlanBytes
  Digest data_digest;
  LS_FIELDS(PlanMade, plan_hash, plan, data_digest)
};

enum class PrepareProblem : uint8_t {
  kCannotRun = 0,   // the plan cannot run here at all: never admitted
  kProbe = 1,       // other bits than recorded
  kData = 2,        // a data file is bad or missing
  kDoesNotFit = 3,  // memory
  kOther = 4,
};

// MakePlan or Prepare failed.
struct PrepareFailed {
  PrepareProblem problem = PrepareProblem::kOther;
  std::string message;
  LS_FIELDS(PrepareFailed, problem, message)
};

// Answer to TestPeers.
struct PeersTested {
  uint64_t round = 0;
  std::vector<Incarnation> reached;
  std::vector<Incarnation> failed;
  std::string message;  // of the first failure
  LS_FIELDS(PeersTested, round, reached, failed, message)
};

// This worker has stopped all computing of `generation` and holds this state (rule 8). Also answers a verdict about a
// generation that the worker does not run (any more).
struct VerdictAck {
  Generation generation;
  bool has_state = false;
  Lineage lineage;
  Position position;
  Digest digest;  // only with TrainingPolicy::digest_in_acks
  std::vector<KeptState> kept;
  LS_FIELDS(VerdictAck, generation, has_state, lineage, position, digest, kept)
};

// The control word asked for kLeave or kForm; the worker waits at the boundary. Acknowledges its generation's end.
struct AtBoundary {
  Generation generation;
  Lineage lineage;
  Position position;
  Digest digest;  // only with digest_in_acks
  bool leaving = false;
  std::vector<KeptState> kept;
  LS_FIELDS(AtBoundary, generation, lineage, position, digest, leaving, kept)
};

// Communicator formed and state synchronised: this member steps now.
struct Formed {
  Generation generation;
  Position position;
  Digest digest;
  LS_FIELDS(Formed, generation, position, digest)
};

// A collective, the forming of the communicator or the synchronisation failed here. Evidence: breaks the generation.
struct PeerFailed {
  Generation generation;
  Incarnation suspect;         // none when the error names no peer
  bool while_forming = false;  // the pair is not used again until a test connection succeeds (rule 11)
  std::string message;
  bool damaged = false;  // the checkpoint that was fetched is not the one published; false for storage errors
  LS_FIELDS(PeerFailed, generation, suspect, while_forming, message, damaged)
};

// One applied step as rank 0 reports it.
struct StepRecord {
  uint64_t step = 0;
  double loss = 0;
  bool skipped = false;      // it changed nothing, because a gradient was not finite (`on_nan: skip_step`)
  double learning_rate = 0;  // of parameters without a group
  LS_FIELDS(StepRecord, step, loss, skipped, learning_rate)
};

struct StateDigest {
  Position position;
  Digest digest;
  LS_FIELDS(StateDigest, position, digest)
};

// Progress in batches. This worker has applied `position`.
struct Report {
  Generation generation;
  Lineage lineage;
  Position position;
  std::vector<StepRecord> records;   // rank 0 only
  std::vector<StateDigest> digests;  // audits (rule 22)
  std::vector<NamedValue> stats;     // cumulative counters of this worker, names in protos/stats.proto
  LS_FIELDS(Report, generation, lineage, position, records, digests, stats)
};

enum class SnapshotCause : uint8_t {
  kDue = 0,     // a request or a function of the step; members step on
  kHold = 1,    // members wait at this boundary until the save is published or abandoned
  kEnd = 2,     // last step of the job; members wait for Done
  kStop = 3,    // a stop request was served; members wait for Done
  kAtRest = 4,  // the chief asked a replica that was not stepping
  kBest = 5     // the best state so far: members wait until it is published, even while the chief is away
};

// The worker holds a snapshot in memory; the chief asks for its shares (AskShare).
struct SnapshotTaken {
  Generation generation;
  SnapshotId snapshot;
  SnapshotCause cause = SnapshotCause::kDue;
  EvaluationLedger ledger;  // of this state
  LS_FIELDS(SnapshotTaken, generation, snapshot, cause, ledger)
};

// Share `share` of `shares` could not be sent (after retries of the shell) or its snapshot is gone.
struct ShareFailed {
  SnapshotId snapshot;
  uint32_t share = 0, shares = 0;
  std::string message;
  bool gone = false;  // the snapshot is not held any more: its end and the chief's wish for it crossed
  LS_FIELDS(ShareFailed, snapshot, share, shares, message, gone)
};

// The result of one evaluation slice; results are folded in slice order (rule 26).
struct SliceResult {
  uint64_t slice = 0;
  EvaluationSums sums;
  LS_FIELDS(SliceResult, slice, sums)
};

// Results of the evaluation of `step` that this worker knows. Rank 0 sends each slice as it comes; every member sends
// all it holds of the newest evaluations after a new session began. The chief keeps the first of each slice.
struct EvalReport {
  Lineage lineage;
  uint64_t step = 0;
  std::vector<SliceResult> slices;
  LS_FIELDS(EvalReport, lineage, step, slices)
};

// The worker got SIGTERM. Outside a generation it is dismissed at once; inside one it leaves by the control word.
struct LeaveIntent {
  absl::Duration grace;  // after which the process ends in any case
  LS_FIELDS(LeaveIntent, grace)
};

// The worker's last message: it exits with `exit_code`.
struct Left {
  int32_t exit_code = 0;
  std::string reason;
  LS_FIELDS(Left, exit_code, reason)
};

// The worker failed with an error and is about to exit with `exit_code`. Spends the failure budget (rule 15).
struct ErrorReport {
  int32_t exit_code = 0;
  uint64_t step = 0;
  std::string message;
  LS_FIELDS(ErrorReport, exit_code, step, message)
};

// A value for the other members of the generation while their communicator forms; the chief forwards it as StorePush.
struct StoreSet {
  Generation generation;
  std::string key;
  std::string value;
  LS_FIELDS(StoreSet, generation, key, value)
};

// The worker could not carry out a command as addressed (unknown generation, other term, other position).
struct CommandRejected {
  std::string command;    // its type name
  ChiefFence fence;       // as received
  Generation generation;  // that this worker runs; none when idle
  std::string reason;
  LS_FIELDS(CommandRejected, command, fence, generation, reason)
};

LS_ONE_OF(WorkerMessage,
          std::variant<Hello, PlanMade, Ready, PrepareFailed, PeersTested, VerdictAck, AtBoundary, Formed, PeerFailed,
                       Report, SnapshotTaken, ShareFailed, EvalReport, TextSample, LeaveIntent, Left, ErrorReport,
                       StoreSet, CommandRejected, Returned, Observation>);

// ---- chief → worker -----------------------------------------------------------------------------------------------
// Answer to an accepted Hello. The term is in the fence and holds from here on. A worker that runs a generation goes on
// with it until a Verdict says otherwise (rule 14: adoption needs no message).
struct Welcome {
  std::string job;
  std::string name;
  Lineage lineage;
  std::string metagraph;  // fingerprint, to fetch
  TrainingPolicy policy;
  uint64_t protocol = kProtocol;
  LS_FIELDS(Welcome, job, name, lineage, metagraph, policy, protocol)
};

// The worker is not wanted; it exits with `exit_code`.
struct Refused {
  int32_t exit_code = 0;
  std::string message;
  LS_FIELDS(Refused, exit_code, message)
};

// Make the job's kernel plan and record the probe (rule 30). Answered by PlanMade or PrepareFailed.
struct MakePlan {
  std::string metagraph;
  LS_FIELDS(MakePlan, metagraph)
};

// Fetch, plan, allocate, warm up, probe. Answered by Ready or PrepareFailed.
struct Prepare {
  std::string metagraph;
  std::string plan_hash;
  Digest data_digest;  // empty: not yet known
  Digest settings;     // TrainingPolicy::settings
  LS_FIELDS(Prepare, metagraph, plan_hash, data_digest, settings)
};

// Try to connect to each peer. Answered by PeersTested{round}.
struct TestPeers {
  uint64_t round = 0;
  std::vector<Member> peers;
  LS_FIELDS(TestPeers, round, peers)
};

// The generation in the fence is over: abort its collectives, stop computing, answer VerdictAck, keep the state.
struct Verdict {
  std::string reason;
  LS_FIELDS(Verdict, reason)
};

// Become a member of the generation in the fence: form the communicator, synchronise, step from `position`.
// Live: `source_rank` sends to `receivers`, everybody else keeps what it has. Restore (`restore` set): every rank
// fetches share rank/N of that checkpoint and the peers broadcast; `ledger` is its, source_rank and receivers nothing.
struct Form {
  std::vector<Member> members;
  Lineage lineage;
  Position position;
  std::optional<SnapshotId> restore;
  uint32_t source_rank = 0;
  std::vector<uint32_t> receivers;
  EvaluationLedger ledger;
  std::string reason;
  LS_FIELDS(Form, members, lineage, position, restore, source_rank, receivers, ledger, reason)
};

// Contribute this request to the control word until it is served or the generation ends (rule 1).
struct BoundaryRequest {
  RequestKind kind = RequestKind::kForm;
  uint64_t number = 0;
  LS_FIELDS(BoundaryRequest, kind, number)
};

// To a replica at rest: snapshot this very state (rule 3). Answered by SnapshotTaken{kAtRest} or CommandRejected.
struct TakeSnapshot {
  Lineage lineage;
  Position position;
  LS_FIELDS(TakeSnapshot, lineage, position)
};

// Upload share `share` of `shares` of this snapshot. Answered by the upload, or ShareFailed.
struct AskShare {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  LS_FIELDS(AskShare, snapshot, share, shares)
};

// The save ended, published or abandoned: free the snapshot and end a hold for it.
struct SnapshotEnded {
  SnapshotId snapshot;
  bool published = false;
  LS_FIELDS(SnapshotEnded, snapshot, published)
};

// A leaver may go: exit 75.
struct Dismiss {
  std::string reason;
  LS_FIELDS(Dismiss, reason)
};

// End the process with this code.
struct Shutdown {
  int32_t exit_code = 0;
  std::string reason;
  LS_FIELDS(Shutdown, exit_code, reason)
};

// The job is done, or stopped, and its last step published: exit with `exit_code`.
struct Done {
  int32_t exit_code = 0;
  uint64_t step = 0;
  Digest digest;
  LS_FIELDS(Done, exit_code, step, digest)
};

// Your message did not fit this session (term, job or incarnation): say Hello again.
struct Fenced {
  std::string reason;
  LS_FIELDS(Fenced, reason)
};

// The StoreSet of a peer, forwarded.
struct StorePush {
  std::string key;
  std::string value;
  LS_FIELDS(StorePush, key, value)
};

LS_ONE_OF(ChiefCommand,
          std::variant<Welcome, Refused, MakePlan, Prepare, TestPeers, Verdict, Form, BoundaryRequest, TakeSnapshot,
                       AskShare, SnapshotEnded, Dismiss, Shutdown, Done, Fenced, StorePush, ReturnTo, StatesDiffer>);

// Limits on messages from workers; a larger one is refused with an error.
inline constexpr uint64_t kMaxPlanBytes = 16u << 20;
inline constexpr uint64_t kMaxStoreValueBytes = 64u << 10;
inline constexpr uint64_t kMaxRepeated = 4096;  // entries of any list in a message (members, records, …)
inline constexpr uint64_t kMaxHeldSnapshots = 8;

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_MESSAGES_H_
