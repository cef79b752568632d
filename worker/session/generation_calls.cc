#include "worker/session/generation_calls.h"

#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {
namespace {

constexpr size_t kEarlyKeys = 65536;
// How long a lost device waits to hear that a peer was lost, and how long that explains it.
constexpr absl::Duration kEvidenceWait = absl::Seconds(5);
constexpr absl::Duration kEvidenceAge = absl::Minutes(1);
constexpr absl::Duration kEvidencePoll = absl::Milliseconds(10);

}  // namespace

std::shared_ptr<Communicator> GenerationCalls::Begin(const Generation& generation, const std::vector<Member>& members,
                                                     std::shared_ptr<SessionStore> store) {
  MutexLock lock(&mutex_);
  std::shared_ptr<Communicator> last = std::move(communicator_);
  if (last != nullptr) retired_bytes_ += last->bytes_moved();
  generation_ = generation;
  members_ = members;
  store_ = std::move(store);
  fetches_ = std::make_shared<CallGroup>();
  forming_ = nullptr;
  communicator_ = nullptr;
  aborted_ = absl::OkStatus();
  for (const auto& [of, entry] : early_keys_) {
    if (of == generation) store_->Deliver(entry.first, entry.second);
  }
  early_keys_.clear();
  return last;
}

void GenerationCalls::Deliver(const Generation& generation, const std::string& key, const std::string& value) {
  std::shared_ptr<SessionStore> store;
  {
    MutexLock lock(&mutex_);
    if (generation_ == generation) {
      store = store_;
    } else if (early_keys_.size() < kEarlyKeys) {
      early_keys_.push_back({generation, {key, value}});
    }
  }
  if (store != nullptr) store->Deliver(key, value);
}

bool GenerationCalls::Abort(const Generation& generation, const absl::Status& cause) {
  std::shared_ptr<SessionStore> store;
  std::shared_ptr<CallGroup> fetches;
  std::shared_ptr<SocketForming> forming;
  std::shared_ptr<Communicator> communicator;
  {
    MutexLock lock(&mutex_);
    if (generation_ != generation) return false;
    if (aborted_.ok()) aborted_ = cause;
    if (communicator_ != nullptr && communicator_->size() > 1) broken_at_ = SteadyNow();
    store = store_;
    fetches = fetches_;
    forming = forming_;
    communicator = communicator_;
  }
  store->Abort(cause);
  fetches->Cancel();
  if (forming != nullptr) forming->Abort(cause);
  if (communicator != nullptr) communicator->Abort(cause);
  return true;
}

std::shared_ptr<SocketForming> GenerationCalls::StartForming(const Generation& generation,
                                                             const SocketForming::Options& options,
                                                             PeerListener& listener) {
  MutexLock lock(&mutex_);
  if (generation_ != generation || !aborted_.ok()) return nullptr;
  forming_ = std::make_shared<SocketForming>(options, listener, *store_);
  return forming_;
}

absl::Status GenerationCalls::Keep(const Generation& generation, absl::Status status,
                                   const std::shared_ptr<Communicator>& communicator) {
  MutexLock lock(&mutex_);
  if (generation_ != generation) return absl::AbortedError("another generation is being formed");
  forming_ = nullptr;
  if (status.ok()) status = aborted_;
  if (status.ok()) communicator_ = communicator;
  return status;
}

void GenerationCalls::Close(const Generation& generation) {
  std::shared_ptr<Communicator> communicator;
  {
    MutexLock lock(&mutex_);
    if (generation_ == generation) communicator = std::exchange(communicator_, nullptr);
    if (communicator != nullptr) retired_bytes_ += communicator->bytes_moved();
  }
  // A thread that aborts it at this moment lets go of it soon.
  while (communicator.use_count() > 1) absl::SleepFor(absl::Microseconds(100));
}

absl::StatusOr<std::shared_ptr<Communicator>> GenerationCalls::CommunicatorOf(const Generation& generation) const {
  MutexLock lock(&mutex_);
  if (generation_ != generation || communicator_ == nullptr) {
    return absl::AbortedError(absl::StrCat("generation ", generation.ToString(), " has no communicator here"));
  }
  LS_RETURN_IF_ERROR(aborted_);
  return communicator_;
}

absl::StatusOr<std::shared_ptr<CallGroup>> GenerationCalls::Fetches() const {
  MutexLock lock(&mutex_);
  LS_RETURN_IF_ERROR(aborted_);
  return fetches_;
}

bool GenerationCalls::IsNewest(const Generation& generation) const {
  MutexLock lock(&mutex_);
  return generation_ == generation;
}

Generation GenerationCalls::newest() const {
  MutexLock lock(&mutex_);
  return generation_;
}

OwnMember GenerationCalls::Own() const {
  MutexLock lock(&mutex_);
  if (communicator_ == nullptr) return {generation_, "", -1};
  const int rank = communicator_->rank();
  return {generation_, members_[static_cast<size_t>(rank)].name, rank};
}

uint64_t GenerationCalls::bytes_moved() const {
  MutexLock lock(&mutex_);
  return retired_bytes_ + (communicator_ == nullptr ? 0 : communicator_->bytes_moved());
}

Incarnation GenerationCalls::Suspect(const Generation& generation, const absl::Status& status) const {
  MutexLock lock(&mutex_);
  if (generation_ != generation) return {};
  std::optional<int> rank = BlamedRank(status);
  if (!rank.has_value() && communicator_ != nullptr) rank = BlamedRank(communicator_->status());
  const bool known = rank.has_value() && *rank >= 0 && static_cast<size_t>(*rank) < members_.size();
  return known ? members_[static_cast<size_t>(*rank)].incarnation : Incarnation();
}

// A process that dies takes its GPU's memory from under the kernels of its peers, which may fail before anybody has
// heard of the death.
bool GenerationCalls::LostPeer() const {
  const absl::Time limit = SteadyNow() + kEvidenceWait;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (SteadyNow() - broken_at_ < kEvidenceAge) return true;
      if (communicator_ == nullptr || communicator_->size() == 1) return false;
      if (!communicator_->status().ok()) return true;
    }
    if (SteadyNow() >= limit) return false;
    absl::SleepFor(kEvidencePoll);
  }
}

}  // namespace lockstep::worker
