#include "worker/session/engine.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "worker/collectives/paired_communicator.h"
#include "worker/data/data_lost.h"
#include "worker/device/choice/cuda_loader.h"
#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

constexpr size_t kQueuedActions = 256;

}  // namespace

Engine::Engine(Options options)
    : options_(std::move(options)),
      looks_(
          snapshots_, [this] { return calls_.Own(); }, options_.post),
      background_("digests", kQueuedActions),
      thread_(kThreadName, kQueuedActions) {}

Engine::~Engine() {
  const Generation generation = calls_.newest();
  if (!generation.IsNone()) Perform(AbortCollectives{generation, "the worker is ending"});
  thread_.Finish();
  background_.Finish();
  looks_.Finish();
}

template <typename Action>
void Engine::Enqueue(Action action) {
  thread_.Post([this, action = std::move(action)] { Do(action); });
}

void Engine::Perform(const MakeKernelPlan& action) { Enqueue(action); }
void Engine::Perform(const PrepareReplica& action) { Enqueue(action); }
void Engine::Perform(const SyncState& action) { Enqueue(action); }
void Engine::Perform(const RunStep& action) { Enqueue(action); }
void Engine::Perform(const RunSlice& action) { Enqueue(action); }
void Engine::Perform(const CancelSample&) { CancelSamples(); }
void Engine::Perform(const StopComputing& action) { Enqueue(action); }
void Engine::Perform(const ComputeDigest& action) { Enqueue(action); }
void Engine::Perform(const TakeUpKept& action) { Enqueue(action); }
void Engine::Perform(const DropKept& action) { Enqueue(action); }
void Engine::Perform(const ReleaseMemory& action) { Enqueue(action); }
void Engine::Perform(const TakeSnapshot& action) { Enqueue(action); }

void Engine::Perform(const WriteSample& action) {
  thread_.Post([this, action, number = ++samples_] { WriteText(action, number); });
}

void Engine::Perform(const FormCommunicator& action) {
  const auto send = [this, generation = action.generation](const std::string& key, const std::string& value) {
    options_.send_store(generation, key, value);
  };
  std::shared_ptr<Communicator> last =
      calls_.Begin(action.generation, action.members, std::make_shared<SessionStore>(send));
  CancelPasses(false);
  // To close its connections takes longer than the caller may wait.
  if (last != nullptr) thread_.Post([last = std::move(last)] {});
  Enqueue(action);
}

void Engine::Perform(const DeliverStore& action) { calls_.Deliver(action.generation, action.key, action.value); }

void Engine::Perform(const AbortCollectives& action) {
  if (!calls_.Abort(action.generation, absl::AbortedError(action.reason))) return;
  CancelSamples();
  CancelPasses(true);
}

void Engine::Fail(const Generation& generation, const absl::Status& status) {
  const bool data_lost = IsDataLost(status);
  if (data_lost) options_.post(DataLost{std::string(status.message())});
  if (absl::IsInternal(status) || device::IsDeviceLost(status)) return FailForGood(status);
  options_.post(CollectiveFailed{generation, calls_.Suspect(generation, status), std::exchange(sync_voided_, false),
                                 std::string(status.message()), absl::IsDataLoss(status) && !data_lost});
}

void Engine::Do(const FormCommunicator& action) {
  const NowDoing forming_it("connecting with ", action.members.size() - 1, " peers for generation ",
                            action.generation.term, ".", action.generation.counter);
  BreakDurations();
  // Before anybody waits for this rank.
  if (!HasMemoryAgain()) return;
  SocketForming::Options sockets{.group = {.generation = action.generation,
                                           .rank = static_cast<int>(action.rank),
                                           .size = static_cast<int>(action.members.size())},
                                 .host = options_.peer_host,
                                 .security = peer_security_,
                                 .form_limit = options_.form_limit,
                                 .memory = shared_memory_};
  for (const Member& member : action.members) {
    sockets.group.names.push_back(absl::StrCat(member.name, " at ", member.address));
  }
  const std::shared_ptr<SocketForming> forming =
      calls_.StartForming(action.generation, sockets, *options_.peer_listener);
  if (forming == nullptr) return Fail(action.generation, absl::AbortedError("aborted before it was formed"));
  absl::StatusOr<std::unique_ptr<Communicator>> formed;
  {
    const Pulse::Waiting waiting(&pulse_);
    formed = forming->Run();
  }
  std::shared_ptr<Communicator> communicator;
  if (formed.ok()) communicator = *std::move(formed);
  absl::Status status = calls_.Keep(action.generation, formed.status(), communicator);
  if (status.ok()) {
    // Aborts reach the ranks that connect their devices through the communicator that is there already.
    const Pulse::Waiting waiting(&pulse_);
    absl::StatusOr<std::shared_ptr<Communicator>> joined = JoinDevices(std::move(communicator));
    if (joined.ok()) communicator = *std::move(joined);
    status = calls_.Keep(action.generation, joined.status(), communicator);
  }
  if (status.ok()) return options_.post(CommunicatorFormed{action.generation});
  if (calls_.IsNewest(action.generation)) Fail(action.generation, status);
}

void Engine::FailForGood(const absl::Status& status) {
  if (!device::IsDeviceLost(status) || !calls_.LostPeer()) {
    options_.post(InternalError{kExitBug, std::string(status.message())});
    return;
  }
  options_.post(InternalError{
      kExitPreempted,
      absl::StrCat("a peer is gone whose GPU this one read from, and this GPU is of no use to the process any more (",
                   status.message(), "): it has to be started again")});
}

absl::StatusOr<std::shared_ptr<Communicator>> Engine::JoinDevices(std::shared_ptr<Communicator> host) {
  const std::optional<int> gpu = replica_->gpu();
  if (!gpu.has_value() || host->size() == 1) return host;
  LS_ASSIGN_OR_RETURN(const device::CudaLibrary* const library, device::LoadCudaLibrary());
  if (library->join == nullptr) return host;
  LS_ASSIGN_OR_RETURN(device::JoinedGpus joined, library->join(*gpu, *host));
  if (joined.communicator == nullptr) {
    LS_LOG(info, "gradients travel through host memory: ", joined.why_not);
    return host;
  }
  return PairCommunicators(std::move(host), std::move(joined.communicator));
}

void Engine::Do(const StopComputing& action) {
  const NowDoing stopping("closing the communicator of generation ", action.generation.term, ".",
                          action.generation.counter);
  // It is closed here, before computing counts as stopped.
  calls_.Close(action.generation);
  options_.post(ComputingStopped{action.generation, std::exchange(sync_voided_, false)});
}

std::shared_ptr<Replica> Engine::SharedReplica() const {
  MutexLock lock(&mutex_);
  return shared_replica_;
}

void Engine::CancelSamples() {
  cancelled_samples_ = samples_.load();
  if (const std::shared_ptr<Replica> replica = SharedReplica()) replica->CancelSample(true);
}

void Engine::CancelPasses(bool cancel) {
  if (const std::shared_ptr<Replica> replica = SharedReplica()) replica->Cancel(cancel);
}

uint64_t Engine::progress() const {
  return pulse_.progress() + calls_.bytes_moved() + options_.client->bytes_fetched();
}

}  // namespace lockstep::worker
