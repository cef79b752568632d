// The part of a worker that computes and communicates with peers. It carries out these actions of the session core on
// one thread, which owns the device, the state and the collectives, and posts the results as events.
//
// Invariants
//   * Actions of one generation are carried out in the order in which they were given.
//   * After the abort of a generation nothing of it starts any more, and work in progress ends early: forming, fetches
//     and collectives. An update that has begun runs to its end, and its StepFinished is posted before
//     ComputingStopped.
//
// Threading: thread-safe. Perform never waits for the engine's thread or the network.
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
#include "worker/collectives/shared/shared_memory.h"
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
  // The engine thread's name in dumps.
  static constexpr char kThreadName[] = "engine";

  struct Options {
    std::string peer_host;
    PeerListener* peer_listener = nullptr;  // at peer_host; outlives the engine
    // The time limit for the members of a generation to connect.
    absl::Duration form_limit = SocketForming::Options().form_limit;
    ChiefClient* client = nullptr;  // outlives the engine
    // Receives events; thread-safe, does not block.
    std::function<void(Event)> post;
    // The current fence for calls to the chief. Thread-safe.
    std::function<WorkerFence()> fence;
    // Sends a rendezvous key of a generation over the session. Thread-safe, does not block.
    std::function<void(const Generation&, const std::string& key, const std::string& value)> send_store;
    // `--device` and `--local-rank`.
    device::WorkerDevice device;
    // `--data-root`.
    std::vector<DataRoot> data_roots;
  };

  explicit Engine(Options options);
  // Aborts the work in progress and waits for its end.
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
  // These two act at once, whatever the engine's thread is doing.
  void Perform(const AbortCollectives& action);
  void Perform(const DeliverStore& action);

  SnapshotStore& snapshots() { return snapshots_; }
  // A measure of progress that never decreases: nodes prepared and executed + bytes read, hashed, fetched and moved.
  uint64_t progress() const;
  // The engine's thread waits for other ranks, which are then responsible for a lack of progress (rule 6).
  bool waits_for_peer() const { return pulse_.waits_for_peer(); }
  // Cumulative counters, and quantiles of the latest steps' durations, for reports; protos/stats.proto lists the names.
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
  // False: not enough memory for a copy.
  bool KeepCopy(const ComputeDigest& action);
  // Uses all of the replica's threads. REQUIRES: nothing else computes.
  std::string DigestOf(const HostState& state) { return state.Digest(&pulse_, replica_->digest_threads()); }
  void Do(const TakeUpKept& action);
  void Do(const DropKept& action);
  void Do(const ReleaseMemory& action);
  void Do(const TakeSnapshot& action);

  // Pairs `host` with a device communicator if the ranks are on GPUs and can reduce in their memory.
  absl::StatusOr<std::shared_ptr<Communicator>> JoinDevices(std::shared_ptr<Communicator> host);
  using FetchBytes = std::function<absl::StatusOr<std::string>(const WorkerFence&)>;
  // Retries until the chief answers; Cancelled when the worker ends meanwhile.
  absl::StatusOr<std::string> FetchPatiently(const FetchBytes& fetch);
  std::unique_ptr<Replica> MakeReplica(const std::string& metagraph, const std::string& plan_hash,
                                       ReplicaProblem& problem);
  void Install(std::unique_ptr<Replica> replica, const std::string& metagraph);
  // Allocates the memory that ReleaseMemory freed. False: it failed, and an error was posted.
  bool HasMemoryAgain();
  // Restore and Transfer return the digest of the state that every member then holds.
  absl::StatusOr<std::string> Restore(Communicator& communicator, const SyncState& action);
  // `progress` is set to the source's.
  absl::StatusOr<std::string> Transfer(Communicator& communicator, const SyncState& action,
                                       EvaluationProgress& progress);
  // Null before the first replica is made.
  std::shared_ptr<Replica> SharedReplica() const;
  void CancelPasses(bool cancel);
  void CancelSamples();
  void Fail(const Generation& generation, const absl::Status& status);
  // Reports an error that no new generation can fix: a bug, or a device that was lost together with a peer.
  void FailForGood(const absl::Status& status);
  void PublishStats();
  // The next step does not directly follow the previous one.
  void BreakDurations();
  template <typename Action>
  void Enqueue(Action action);

  const Options options_;
  Pulse pulse_;
  SnapshotStore snapshots_;
  SnapshotStore kept_;     // copies of the state at audits
  GenerationCalls calls_;  // thread-safe
  HookLooks looks_;
  // The members from here to flipped_, except the atomic counters, are owned by the engine's thread.
  Replica* replica_ = nullptr;                                       // == shared_replica_.get()
  std::string metagraph_;                                            // of the replica
  HooksOfJob made_hooks_;                                            // of a replica that is made but not installed yet
  PeerSecurity peer_security_ = PeerSecurity::kEncryptedBeyondHost;  // of the job
  const std::shared_ptr<SharedMemory> shared_memory_ = SharedMemory::Make();  // read by peers on this host
  bool sync_voided_ = false;                    // a failed transfer overwrote the state in this generation
  std::atomic<uint64_t> samples_{0};            // number of samples requested
  std::atomic<uint64_t> cancelled_samples_{0};  // samples up to this number, from 1, are cancelled
  absl::Duration checkpoint_time_;
  int64_t steps_ = 0;
  GradientNorm norm_;  // the latest; step 0: none
  bool flipped_ = false;

  mutable Mutex mutex_;
  std::shared_ptr<Replica> shared_replica_ GUARDED_BY(mutex_);
  std::vector<NamedValue> stats_ GUARDED_BY(mutex_);
  StepDurations durations_ GUARDED_BY(mutex_);

  SerialExecutor background_;  // digests of snapshots
  SerialExecutor thread_;      // the last member, so that it is destroyed first
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_ENGINE_H_
