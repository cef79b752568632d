#include "worker/session/engine.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/paired_communicator.h"
#include "worker/device/cuda_loader.h"
#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

constexpr size_t kQueuedActions = 256;
constexpr size_t kEarlyKeys = 65536;
// How long a lost device waits to hear that a peer was lost, and how long that explains it.
constexpr absl::Duration kEvidenceWait = absl::Seconds(5);
constexpr absl::Duration kEvidenceAge = absl::Minutes(1);
constexpr absl::Duration kEvidencePoll = absl::Milliseconds(10);

}  // namespace

Engine::Engine(Options options)
    : options_(std::move(options)),
      background_("digests", kQueuedActions),
      looks_("hooks", kQueuedActions),
      thread_(kThreadName, kQueuedActions) {}

Engine::~Engine() {
  Generation generation;
  {
    MutexLock lock(&mutex_);
    generation = attempt_.generation;
  }
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
  auto store = std::make_shared<SessionStore>(send);
  std::shared_ptr<Communicator> last;
  {
    MutexLock lock(&mutex_);
    last = std::move(attempt_.communicator);
    if (last != nullptr) Retire(*last);
    attempt_ = Attempt{action.generation, action.members, store,           std::make_shared<CallGroup>(),
                       nullptr,           nullptr,        absl::OkStatus()};
    for (const auto& [generation, entry] : early_keys_) {
      if (generation == action.generation) store->Deliver(entry.first, entry.second);
    }
    early_keys_.clear();
  }
  CancelPasses(false);
  // To close its connections takes longer than the caller may wait.
  if (last != nullptr) thread_.Post([last = std::move(last)] {});
  Enqueue(action);
}

void Engine::Perform(const DeliverStore& action) {
  std::shared_ptr<SessionStore> store;
  {
    MutexLock lock(&mutex_);
    if (attempt_.generation == action.generation) {
      store = attempt_.store;
    } else if (early_keys_.size() < kEarlyKeys) {
      early_keys_.push_back({action.generation, {action.key, action.value}});
    }
  }
  if (store != nullptr) store->Deliver(action.key, action.value);
}

void Engine::Perform(const AbortCollectives& action) {
  const absl::Status cause = absl::AbortedError(action.reason);
  Attempt attempt;
  {
    MutexLock lock(&mutex_);
    if (attempt_.generation != action.generation) return;
    if (attempt_.aborted.ok()) attempt_.aborted = cause;
    if (attempt_.communicator != nullptr && attempt_.communicator->size() > 1) broken_at_ = SteadyNow();
    attempt = attempt_;
  }
  CancelSamples();
  CancelPasses(true);
  attempt.store->Abort(cause);
  attempt.fetches->Cancel();
  if (attempt.forming) attempt.forming->Abort(cause);
  if (attempt.communicator) attempt.communicator->Abort(cause);
}

void Engine::Retire(const Communicator& communicator) { retired_bytes_ += communicator.bytes_moved(); }

absl::StatusOr<std::shared_ptr<Communicator>> Engine::CommunicatorOf(const Generation& generation) {
  MutexLock lock(&mutex_);
  if (attempt_.generation != generation || attempt_.communicator == nullptr) {
    return absl::AbortedError(absl::StrCat("generation ", generation.ToString(), " has no communicator here"));
  }
  LS_RETURN_IF_ERROR(attempt_.aborted);
  return attempt_.communicator;
}

void Engine::Fail(const Generation& generation, const absl::Status& status) {
  if (absl::IsInternal(status)) return FailForGood(status);
  options_.post(CollectiveFailed{generation, Suspect(generation, status), std::exchange(sync_voided_, false),
                                 std::string(status.message()), absl::IsDataLoss(status)});
}

Incarnation Engine::Suspect(const Generation& generation, const absl::Status& status) const {
  MutexLock lock(&mutex_);
  if (attempt_.generation != generation) return {};
  std::optional<int> rank = BlamedRank(status);
  if (!rank.has_value() && attempt_.communicator != nullptr) rank = BlamedRank(attempt_.communicator->status());
  const bool known = rank.has_value() && *rank >= 0 && static_cast<size_t>(*rank) < attempt_.members.size();
  return known ? attempt_.members[static_cast<size_t>(*rank)].incarnation : Incarnation();
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
                                 .form_limit = options_.form_limit};
  for (const Member& member : action.members) {
    sockets.group.names.push_back(absl::StrCat(member.name, " at ", member.address));
  }
  std::shared_ptr<SessionStore> store;
  std::shared_ptr<SocketForming> forming;
  {
    MutexLock lock(&mutex_);
    if (attempt_.generation == action.generation && attempt_.aborted.ok()) {
      store = attempt_.store;
      forming = attempt_.forming = std::make_shared<SocketForming>(sockets, *options_.peer_listener, *store);
    }
  }
  if (forming == nullptr) return Fail(action.generation, absl::AbortedError("aborted before it was formed"));
  absl::StatusOr<std::unique_ptr<Communicator>> formed;
  {
    const Pulse::Waiting waiting(&pulse_);
    formed = forming->Run();
  }
  std::shared_ptr<Communicator> communicator;
  if (formed.ok()) communicator = *std::move(formed);
  absl::Status status = Keep(action.generation, formed.status(), communicator);
  if (status.ok()) {
    // Aborts reach the ranks that connect their devices through the communicator that is there already.
    const Pulse::Waiting waiting(&pulse_);
    absl::StatusOr<std::shared_ptr<Communicator>> joined = JoinDevices(std::move(communicator));
    if (joined.ok()) communicator = *std::move(joined);
    status = Keep(action.generation, joined.status(), communicator);
  }
  if (status.ok()) return options_.post(CommunicatorFormed{action.generation});
  if (IsCurrent(action.generation)) Fail(action.generation, status);
}

void Engine::FailForGood(const absl::Status& status) {
  if (!device::IsDeviceLost(status) || !LostPeer()) {
    options_.post(InternalError{kExitBug, std::string(status.message())});
    return;
  }
  options_.post(InternalError{
      kExitPreempted,
      absl::StrCat("a peer is gone whose GPU this one read from, and this GPU is of no use to the process any more (",
                   status.message(), "): it has to be started again")});
}

// A process that dies takes its GPU's memory from under the kernels of its peers, which may fail before anybody has
// heard of the death.
bool Engine::LostPeer() {
  const absl::Time limit = SteadyNow() + kEvidenceWait;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (SteadyNow() - broken_at_ < kEvidenceAge) return true;
      const std::shared_ptr<Communicator>& now = attempt_.communicator;
      if (now == nullptr || now->size() == 1) return false;
      if (!now->status().ok()) return true;
    }
    if (SteadyNow() >= limit) return false;
    absl::SleepFor(kEvidencePoll);
  }
}

bool Engine::IsCurrent(const Generation& generation) const {
  MutexLock lock(&mutex_);
  return attempt_.generation == generation;
}

absl::Status Engine::Keep(const Generation& generation, absl::Status status,
                          const std::shared_ptr<Communicator>& communicator) {
  MutexLock lock(&mutex_);
  if (attempt_.generation != generation) return absl::AbortedError("another generation is being formed");
  attempt_.forming = nullptr;
  if (status.ok()) status = attempt_.aborted;
  if (status.ok()) attempt_.communicator = communicator;
  return status;
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
  std::shared_ptr<Communicator> communicator;
  {
    MutexLock lock(&mutex_);
    if (attempt_.generation == action.generation) {
      communicator = std::move(attempt_.communicator);
      attempt_.communicator = nullptr;
    }
  }
  if (communicator) Retire(*communicator);
  // A thread that aborts it at this moment lets go of it soon: it is closed here, before computing counts as stopped.
  while (communicator.use_count() > 1) absl::SleepFor(absl::Microseconds(100));
  communicator.reset();
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
  uint64_t total = pulse_.progress() + retired_bytes_ + options_.client->bytes_fetched();
  MutexLock lock(&mutex_);
  if (attempt_.communicator) total += attempt_.communicator->bytes_moved();
  return total;
}

}  // namespace lockstep::worker
