// Engine: making the replica ready, and bringing its state to that of the others.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/shares.h"
#include "common/job/job.h"
#include "common/job/log_settings.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "worker/session/engine.h"
#include "worker/step/forecast.h"
#include "worker/step/state_sync.h"

namespace lockstep::worker {
namespace {

// Apart from the tags of steps and slices.
constexpr uint32_t kSyncAttempt = 0x40000000u;

struct TransferHeader {
  char digest[64];
  int64_t step;
  EvaluationProgress progress;
};
static_assert(std::is_trivially_copyable_v<TransferHeader>, "it travels as bytes");

constexpr absl::Duration kRetryEvery = absl::Seconds(1);

// For the log: it explains why a transfer is slow.
std::string WayOf(const StateSync& sync) { return sync.on_device() ? "from device to device" : "through host memory"; }

bool Receives(const SyncState& action, const Communicator& communicator) {
  const auto rank = static_cast<uint32_t>(communicator.rank());
  return std::find(action.receivers.begin(), action.receivers.end(), rank) != action.receivers.end();
}

PeerSecurity PeerSecurityOf(const JobSpec& job) {
  switch (job.security().peers()) {
    case job::Security::PEERS_ENCRYPTED:
      return PeerSecurity::kEncrypted;
    case job::Security::PEERS_AUTHENTICATED:
      return PeerSecurity::kAuthenticated;
    default:
      return PeerSecurity::kEncryptedBeyondHost;
  }
}

// Between replicas of the same layout.
absl::Status MoveState(ReplicaState& from, ReplicaState& to) {
  LS_RETURN_IF_ERROR(from.Fetch());
  to.host().CopyFrom(from.host());
  return to.Store();
}

}  // namespace

// A chief that starts again is worth waiting for: it will ask for the same preparation, and a worker that gave up
// because of a broken stream would be refused for good.
absl::StatusOr<std::string> Engine::FetchPatiently(const FetchBytes& fetch) {
  for (;;) {
    const NowDoing fetching("fetching from the chief");
    absl::StatusOr<std::string> bytes = fetch(options_.fence());
    if (!absl::IsUnavailable(bytes.status()) && !absl::IsFailedPrecondition(bytes.status())) return bytes;
    LS_LOG(info, "cannot fetch from the chief (yet): ", bytes.status().message());
    if (options_.client->WaitForShutdown(kRetryEvery)) return absl::CancelledError("the worker is ending");
  }
}

std::unique_ptr<Replica> Engine::MakeReplica(const std::string& metagraph, const std::string& plan_hash,
                                             ReplicaProblem& problem) {
  const NowDoing making("making the replica");
  ChiefClient& client = *options_.client;
  JobSpec made_of;
  const auto fetch = [&]() -> absl::StatusOr<std::unique_ptr<Replica>> {
    LS_ASSIGN_OR_RETURN(const std::string yaml,
                        FetchPatiently([&](const auto& fence) { return client.FetchJob(fence); }));
    LS_ASSIGN_OR_RETURN(JobSpec job, ParseJob(yaml, "/job.yaml"));
    MoveData(options_.data_roots, job);
    made_of = job;
    ApplyLogSettings(job);
    peer_security_ = PeerSecurityOf(job);
    LS_ASSIGN_OR_RETURN(const std::string graph,
                        FetchPatiently([&](const auto& fence) { return client.FetchMetagraph(fence, metagraph); }));
    std::string plan;
    if (!plan_hash.empty()) {
      LS_ASSIGN_OR_RETURN(plan, FetchPatiently([&](const auto& fence) { return client.FetchPlan(fence, plan_hash); }));
    }
    const bool traces =
        std::any_of(job.hooks().begin(), job.hooks().end(), [](const auto& hook) { return hook.has_profile(); });
    made_hooks_ = {job.name(), {}, traces ? std::make_shared<StepTracer>() : nullptr};
    Profiler* const profiler = traces ? made_hooks_.tracer->profiler() : nullptr;
    return Replica::Make(graph, job, plan, &pulse_, problem, profiler, options_.device, shared_memory_);
  };
  absl::StatusOr<std::unique_ptr<Replica>> replica = fetch();
  if (!replica.ok()) {
    problem = {PrepareProblem::kOther, replica.status()};
    return nullptr;
  }
  if (*replica == nullptr) return nullptr;
  made_hooks_.hooks = StateHooksOf(made_of, (*replica)->state().layout(), (*replica)->train_samples());
  if (made_hooks_.tracer != nullptr) made_hooks_.tracer->SetHooks(TraceHooksOf(made_of, (*replica)->train_samples()));
  LS_LOG(info, "computes on ", (*replica)->device_reason());
  pulse_.Advance();
  absl::Status reserved = snapshots_.Reserve((*replica)->state(), kSnapshotBuffers);
  if (reserved.ok()) reserved = kept_.Reserve((*replica)->state(), (*replica)->kept_copies());
  if (!reserved.ok()) {
    problem = {PrepareProblem::kDoesNotFit, reserved};
    return nullptr;
  }
  return *std::move(replica);
}

void Engine::Install(std::unique_ptr<Replica> replica, const std::string& metagraph) {
  // What watches it lives as long.
  std::shared_ptr<Replica> replaced(replica.release(), [watching = made_hooks_.tracer](Replica* gone) { delete gone; });
  looks_.SetJob(std::move(made_hooks_));
  replica_ = replaced.get();
  metagraph_ = metagraph;
  MutexLock lock(&mutex_);
  shared_replica_.swap(replaced);
}

void Engine::Do(const ReleaseMemory& action) {
  if (replica_ == nullptr || !replica_->ReleaseMemory()) return;
  LS_LOG(info, "gave back ", replica_->releasable_bytes(), " bytes of its GPU's memory: ", action.reason);
}

bool Engine::HasMemoryAgain() {
  if (replica_ == nullptr || !replica_->released()) return true;
  const absl::Status taken = replica_->TakeMemory();
  if (taken.ok()) {
    LS_LOG(info, "took ", replica_->releasable_bytes(), " bytes of its GPU's memory again");
  } else if (absl::IsResourceExhausted(taken)) {
    // Another process took the memory: this worker counts as preempted. Its successor waits for the memory, or is
    // refused with the number of bytes that it needs.
    options_.post(InternalError{kExitPreempted, std::string(taken.message())});
  } else {
    FailForGood(taken);
  }
  return taken.ok();
}

void Engine::Do(const MakeKernelPlan& action) {
  ReplicaProblem problem;
  std::unique_ptr<Replica> replica = MakeReplica(action.metagraph, "", problem);
  if (replica == nullptr) {
    options_.post(PreparationFailed{PrepareFailed{problem.problem, std::string(problem.status.message())}});
    return;
  }
  Install(std::move(replica), action.metagraph);
  options_.post(PlanFinished{PlanMade{replica_->plan_hash(), replica_->kernel_plan(), replica_->data_digest()}});
}

void Engine::Do(const PrepareReplica& action) {
  const bool same = replica_ != nullptr && metagraph_ == action.metagraph && replica_->plan_hash() == action.plan_hash;
  if (!same || replica_->settings() != action.settings) {
    ReplicaProblem problem;
    std::unique_ptr<Replica> replica = MakeReplica(action.metagraph, action.plan_hash, problem);
    if (replica == nullptr) {
      options_.post(PreparationFailed{PrepareFailed{problem.problem, std::string(problem.status.message())}});
      return;
    }
    if (same) {  // the job was given other settings: what was trained stays
      const absl::Status moved = MoveState(replica_->state(), replica->state());
      if (!moved.ok()) {
        FailForGood(moved);
        return;
      }
      replica->runner().StateReplaced();
    }
    Install(std::move(replica), action.metagraph);
  }
  if (!action.data_digest.empty() && action.data_digest != replica_->data_digest()) {
    options_.post(PreparationFailed{
        PrepareFailed{PrepareProblem::kData,
                      absl::StrCat("the data files here are not those of the job (",
                                   replica_->data_digest().substr(0, 12), ", the job's are ",
                                   action.data_digest.substr(0, 12), "); copy them from a worker that has them")}});
    return;
  }
  options_.post(Prepared{Ready{replica_->plan_hash(), replica_->data_digest(), replica_->longest_node(),
                               static_cast<uint64_t>(replica_->state().layout().TotalBytes()), replica_->settings(),
                               replica_->device_text()},
                         replica_->kept_copies() > 0});
}

void Engine::Do(const SyncState& action) {
  const auto communicator = calls_.CommunicatorOf(action.generation);
  if (!communicator.ok()) return Fail(action.generation, communicator.status());
  const NowDoing syncing("the state of step ", action.position.step, " comes or goes, rank ", (*communicator)->rank(),
                         " of ", (*communicator)->size());
  EvaluationProgress progress = action.progress;
  const absl::StatusOr<std::string> digest =
      action.restore.has_value() ? Restore(**communicator, action) : Transfer(**communicator, action, progress);
  if (!digest.ok()) {
    (*communicator)->Abort(digest.status());
    return Fail(action.generation, digest.status());
  }
  sync_voided_ = false;
  // Who keeps its state keeps what it summed from it (docs/design/0012).
  if (action.restore.has_value() || Receives(action, **communicator)) replica_->runner().StateReplaced();
  options_.post(StateSynced{action.generation, action.position, *digest, progress});
}

absl::StatusOr<std::string> Engine::Transfer(Communicator& communicator, const SyncState& action,
                                             EvaluationProgress& progress) {
  const int root = static_cast<int>(action.source_rank);
  const Tag tag{static_cast<int64_t>(action.position.step), kSyncAttempt};
  ReplicaState& state = replica_->state();
  const bool receives = Receives(action, communicator);
  TransferHeader header{};
  if (communicator.rank() == root) {
    LS_RETURN_IF_ERROR(state.Fetch());
    const std::string digest = DigestOf(state.host());
    std::memcpy(header.digest, digest.data(), sizeof header.digest);
    header.step = state.step();
    header.progress = progress;
  }
  const Handle head = communicator.Broadcast(tag, root, {reinterpret_cast<char*>(&header), sizeof header});
  LS_RETURN_IF_ERROR(WaitFor(*head, &pulse_));
  const std::string expected(header.digest, sizeof header.digest);
  progress = header.progress;
  if (header.step != static_cast<int64_t>(action.position.step)) {
    return absl::AbortedError(
        absl::StrCat("rank ", root, " holds step ", header.step, ", wanted was step ", action.position.step));
  }
  StateSync sync(communicator, tag, state, &pulse_);
  if (receives) sync_voided_ = true;
  LS_RETURN_IF_ERROR(sync.Send(root, receives));
  if (!receives) return expected;
  const std::string digest = DigestOf(state.host());
  if (digest != expected) {
    return absl::DataLossError(
        absl::StrCat("the state received from rank ", root, " has digest ", digest, ", the sender's is ", expected));
  }
  LS_RETURN_IF_ERROR(sync.Keep());
  LS_LOG(info, "received the state of step ", action.position.step, " ", WayOf(sync));
  return digest;
}

absl::StatusOr<std::string> Engine::Restore(Communicator& communicator, const SyncState& action) {
  ReplicaState& live = replica_->state();
  HostState& state = live.host();
  const uint32_t ranks = static_cast<uint32_t>(communicator.size());
  LS_ASSIGN_OR_RETURN(const SharePlan plan, PlanShares(state.CheckpointLayout(), static_cast<int>(ranks)));
  LS_ASSIGN_OR_RETURN(const std::shared_ptr<CallGroup> fetches, calls_.Fetches());
  sync_voided_ = true;
  const Share& own = plan.shares[communicator.rank()];
  uint64_t received = 0;
  absl::Status fetched;
  {
    const NowDoing fetching("share ", communicator.rank() + 1, " of ", ranks, " of step ", action.restore->step,
                            " comes from the chief");
    fetched = options_.client->FetchShare(options_.fence(), *action.restore, static_cast<uint32_t>(communicator.rank()),
                                          ranks, *fetches, [&](uint64_t offset, absl::Span<const char> bytes) {
                                            if (offset + bytes.size() > own.bytes) return;
                                            state.WriteShare(own, offset, bytes);
                                            received += bytes.size();
                                          });
  }
  LS_RETURN_IF_ERROR(fetched);
  if (received != own.bytes) {
    return absl::DataLossError(absl::StrCat("share ", communicator.rank(), " of ", ranks, " came with ", received,
                                            " of ", own.bytes, " bytes"));
  }
  StateSync sync(communicator, {static_cast<int64_t>(action.restore->step), kSyncAttempt}, live, &pulse_);
  LS_RETURN_IF_ERROR(sync.Gather(plan));
  const std::string digest = DigestOf(state);
  if (digest != action.restore->digest || state.step() != static_cast<int64_t>(action.restore->step)) {
    return absl::DataLossError(absl::StrCat("the restored state has digest ", digest, " at step ", state.step(),
                                            ", the checkpoint is ", action.restore->ToString()));
  }
  LS_RETURN_IF_ERROR(sync.Keep());
  LS_LOG(info, "restored the state of step ", action.restore->step, ", shares went ", WayOf(sync));
  return digest;
}

}  // namespace lockstep::worker
