// Everything of a worker that computes or communicates with peers: carries out those actions of the session core, on
// the one thread that owns device, state and collectives, and posts what came of them.
//
// Invariants
//   * Actions of one generation are carried out in the order in which they were given.
//   * Once a generation was aborted, nothing of it starts any more, and what had begun ends early: forming, fetching
//     and collectives; an update that had begun runs to its end, and its StepFinished is posted before
//     ComputingStopped.
// Threading: thread-safe. Perform never waits for the engine's thread, nor for the network.
#ifndef LOCKSTEP_WORKER_SESSION_ENGINE_H_
#define LOCKSTEP_WORKER_SESSION_ENGINE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/liveness/serial_executor.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "common/sync/pulse.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/socket_forming.h"
#include "worker/device/choice/device_choice.h"
#include "worker/session/actions.h"
#include "worker/session/chief_client.h"
#include "worker/session/data_roots.h"
#include "worker/session/events.h"
#include "worker/session/generation_calls.h"
#include "worker/session/hook_looks.h"
#include "worker/snapshot/snapshot_store.h"
#include "worker/step/replica.h"
#include "worker/step/step_durations.h"

namespace lockstep::worker {

class Engine {
 public:
  // Of the thread that computes, in dumps.
  static constexpr char kThreadName[] = "engine";

  struct Options {
    std::string peer_host;
    PeerListener* peer_listener = nullptr;  // at peer_host; outlives this
    // How long the members of a generation have to connect.
    absl::Duration form_limit = SocketForming::Options().form_limit;
    ChiefClient* client = nullptr;
    // Receives what happened; does not block.
    std::function<void(Event)> post;
    // What calls to the chief show now. Thread-safe.
    std::function<WorkerFence()> fence;
    // Sends a rendezvous key of a generation over the session. Thread-safe, does not block.
    std::function<void(const Generation&, const std::string& key, const std::string& value)> send_store;
    // What this worker was told to compute on.
    device::WorkerDevice device;
    // Where this machine has the job's data.
    std::vector<DataRoot> data_roots;
  };

  explicit Engine(Options options);
  // Aborts what is under way and waits for it.
  ~Engine();

  void Perform(const MakeKernelPlan& action);
  void Perform(const PrepareReplica& action);
  void Perform(const FormCommunicator& action);
  void Perform(const SyncState& action);
  void Perform(const RunStep& action);
  void Perform(const RunSlice& action);
  void Perform(const WriteSample& action);
  void Perform(const CancelSample& action);
  void Perform(const StopComputing& action);
  void Perform(const ComputeDigest& action);
  void Perform(const TakeUpKept& action);
  void Perform(const DropKept& action);
  void Perform(const ReleaseMemory& action);
  void Perform(const TakeSnapshot& action);
  // At once, whatever the engine's thread is doing.
  void Perform(const AbortCollectives& action);
  void Perform(const DeliverStore& action);

  SnapshotStore& snapshots() { return snapshots_; }
  // Nodes prepared and executed + bytes read, hashed, fetched and moved; never decreases.
  uint64_t progress() const;
  // The engine's thread waits for other ranks: that nothing progresses is their doing (rule 6).
  bool waits_for_peer() const { return pulse_.waits_for_peer(); }
  // For reports: cumulative counters, and quantiles of the newest steps' durations; see protos/stats.proto for the
  // names.
  std::vector<NamedValue> Stats() const;

 private:
  void Do(const MakeKernelPlan& action);
  void Do(const PrepareReplica& action);
  void Do(const FormCommunicator& action);
  void Do(const SyncState& action);
  void Do(const RunStep& action);
  // For tests of the audit: flips a bit of the state, once, after the step that LOCKSTEP_TEST_FLIP_AFTER_STEP names.
  absl::Status FlipForTest(uint64_t step);
  void Do(const RunSlice& action);
  void WriteText(const WriteSample& action, uint64_t number);
  void Do(const StopComputing& action);
  void Do(const ComputeDigest& action);
  // False: memory does not suffice for a copy.
  bool KeepCopy(const ComputeDigest& action);
  // While nothing else computes: on as many threads as the replica has.
  std::string DigestOf(const HostState& state) { return state.Digest(&pulse_, replica_->digest_threads()); }
  void Do(const TakeUpKept& action);
  void Do(const DropKept& action);
  void Do(const ReleaseMemory& action);
  void Do(const TakeSnapshot& action);

  // With what reduces in the memory of the ranks' GPUs, where they are on GPUs and can.
  absl::StatusOr<std::shared_ptr<Communicator>> JoinDevices(std::shared_ptr<Communicator> host);
  using FetchBytes = std::function<absl::StatusOr<std::string>(const WorkerFence&)>;
  // Fetches as often as it takes to reach the chief; Cancelled when the worker ends meanwhile.
  absl::StatusOr<std::string> FetchPatiently(const FetchBytes& fetch);
  std::unique_ptr<Replica> MakeReplica(const std::string& metagraph, const std::string& plan_hash,
                                       ReplicaProblem& problem);
  void Install(std::unique_ptr<Replica> replica, const std::string& metagraph);
  // What ReleaseMemory gave back. An error has been posted where there is one.
  bool HasMemoryAgain();
  // Both return the digest of the state that every member now holds.
  absl::StatusOr<std::string> Restore(Communicator& communicator, const SyncState& action);
  // `progress` becomes the source's.
  absl::StatusOr<std::string> Transfer(Communicator& communicator, const SyncState& action,
                                       EvaluationProgress& progress);
  // Null before the first replica was made.
  std::shared_ptr<Replica> SharedReplica() const;
  void CancelPasses(bool cancel);
  void CancelSamples();
  void Fail(const Generation& generation, const absl::Status& status);
  // An error that no other generation mends: a bug, or a device that a lost peer took with it.
  void FailForGood(const absl::Status& status);
  void PublishStats();
  // The next step does not go on from the one before.
  void BreakDurations();
  template <typename Action>
  void Enqueue(Action action);

  const Options options_;
  Pulse pulse_;
  SnapshotStore snapshots_;
  SnapshotStore kept_;     // copies of the state at audits
  GenerationCalls calls_;  // thread-safe
  HookLooks looks_;
  Replica* replica_ = nullptr;  // owned by the engine's thread: what shared_replica_ points to
  std::string metagraph_;       // likewise: what the replica was made from
  HooksOfJob made_hooks_;       // likewise: of the replica that is not installed yet
  PeerSecurity peer_security_ = PeerSecurity::kEncryptedBeyondHost;  // likewise: of the job
  bool sync_voided_ = false;                    // likewise: a half-received state was overwritten in this generation
  std::atomic<uint64_t> samples_{0};            // asked for
  std::atomic<uint64_t> cancelled_samples_{0};  // of them, from the first on
  absl::Duration checkpoint_time_;              // owned by the engine's thread
  int64_t steps_ = 0;                           // likewise
  GradientNorm norm_;                           // likewise: the newest; of step 0: none
  bool flipped_ = false;                        // likewise

  mutable Mutex mutex_;
  std::shared_ptr<Replica> shared_replica_ GUARDED_BY(mutex_);
  std::vector<NamedValue> stats_ GUARDED_BY(mutex_);
  StepDurations durations_ GUARDED_BY(mutex_);

  SerialExecutor background_;  // digests of snapshots
  SerialExecutor thread_;      // last: it ends first
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_ENGINE_H_
