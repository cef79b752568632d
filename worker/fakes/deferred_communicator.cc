#include "worker/fakes/deferred_communicator.h"

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {
namespace {

class DeferredCall;

// The calls that the inner communicator has not been given yet, in order. Shared with the handles, which may outlive
// the communicator.
class Backlog {
 public:
  explicit Backlog(Communicator* inner) : inner_(inner) {}

  void Put(std::shared_ptr<DeferredCall> call) {
    MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }
  // Starts every call up to and with `call`, and returns that one's inner handle.
  Handle StartUpTo(DeferredCall& call);
  // The inner handle, null while the call is put off and could still start.
  Handle Started(const DeferredCall& call) const;
  // Ends what was never started; the inner communicator is gone afterwards.
  void Close();

 private:
  mutable Mutex mutex_;
  Communicator* inner_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<DeferredCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

class DeferredCall final : public Pending {
 public:
  DeferredCall(std::shared_ptr<Backlog> backlog, std::function<Handle(Communicator&)> start)
      : backlog_(std::move(backlog)), start_(std::move(start)) {}

  bool Done() const override {
    const Handle inner = backlog_->Started(*this);
    return inner != nullptr && inner->Done();
  }
  absl::Status Wait(absl::Duration limit) override { return backlog_->StartUpTo(*this)->Wait(limit); }

 private:
  friend class Backlog;
  const std::shared_ptr<Backlog> backlog_;
  std::function<Handle(Communicator&)> start_;  // guarded, like inner_, by the backlog's lock
  Handle inner_;
};

Handle Backlog::StartUpTo(DeferredCall& call) {
  MutexLock lock(&mutex_);
  while (call.inner_ == nullptr) {
    DeferredCall& next = *calls_.front();
    next.inner_ = next.start_(*inner_);
    next.start_ = nullptr;
    calls_.pop_front();
  }
  return call.inner_;
}

Handle Backlog::Started(const DeferredCall& call) const {
  MutexLock lock(&mutex_);
  if (call.inner_ == nullptr && !inner_->status().ok()) return EndedHandle(inner_->status());
  return call.inner_;
}

void Backlog::Close() {
  MutexLock lock(&mutex_);
  for (const auto& call : calls_) {
    call->inner_ = EndedHandle(absl::AbortedError("the communicator was closed before the call began"));
    call->start_ = nullptr;
  }
  calls_.clear();
  inner_ = nullptr;
}

class DeferredCommunicator final : public Communicator {
 public:
  explicit DeferredCommunicator(std::unique_ptr<Communicator> inner)
      : inner_(std::move(inner)), backlog_(std::make_shared<Backlog>(inner_.get())) {}
  ~DeferredCommunicator() override { backlog_->Close(); }

  Generation generation() const override { return inner_->generation(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void Abort(const absl::Status& cause) override { inner_->Abort(cause); }
  absl::Status status() const override { return inner_->status(); }
  uint64_t bytes_moved() const override { return inner_->bytes_moved(); }
  DeviceCommunicator* on_device() override { return inner_->on_device(); }

  Handle AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) override {
    return Put(
        [tag, bytes, blocks = Copy(block_bytes)](Communicator& inner) { return inner.AllGather(tag, bytes, blocks); });
  }
  Handle AllReduceExact(Tag tag, ExactAddends addends, absl::Span<float> out,
                        absl::Span<const ExactRun> runs) override {
    return Put([tag, addends, out, own = std::vector<ExactRun>(runs.begin(), runs.end())](Communicator& inner) {
      return inner.AllReduceExact(tag, addends, out, own);
    });
  }
  Handle AllReduceSum(Tag tag, absl::Span<int64_t> values) override {
    return Put([tag, values](Communicator& inner) { return inner.AllReduceSum(tag, values); });
  }
  Handle AllReduceSum(Tag tag, absl::Span<float> values) override {
    return Put([tag, values](Communicator& inner) { return inner.AllReduceSum(tag, values); });
  }
  Handle Broadcast(Tag tag, int root, absl::Span<char> bytes) override {
    return Put([tag, root, bytes](Communicator& inner) { return inner.Broadcast(tag, root, bytes); });
  }

 private:
  static std::vector<int64_t> Copy(absl::Span<const int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

  Handle Put(std::function<Handle(Communicator&)> start) {
    auto call = std::make_shared<DeferredCall>(backlog_, std::move(start));
    backlog_->Put(call);
    return call;
  }

  const std::unique_ptr<Communicator> inner_;
  const std::shared_ptr<Backlog> backlog_;
};

}  // namespace

std::unique_ptr<Communicator> MakeDeferred(std::unique_ptr<Communicator> inner) {
  return std::make_unique<DeferredCommunicator>(std::move(inner));
}

}  // namespace lockstep::worker
