#include "worker/fakes/loopback_device_communicator.h"

#include <deque>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/device_communicator.h"
#include "worker/collectives/paired_communicator.h"
#include "worker/device/step_math.h"

namespace lockstep::worker {
namespace {

class LoopbackDeviceCommunicator final : public DeviceCommunicator {
 public:
  LoopbackDeviceCommunicator(std::unique_ptr<Communicator> host, device::Device& device,
                             std::unique_ptr<device::Stream> stream)
      : host_(std::move(host)), device_(device), stream_(std::move(stream)) {}
  ~LoopbackDeviceCommunicator() override { (void)stream_->Synchronize(); }

  Handle Reduce(Tag tag, const DeviceBucket& bucket, device::Event& filled) override {
    auto call = std::make_shared<Call>(*this, tag);
    call->bucket = bucket;
    call->memory = bucket.sums != nullptr ? reinterpret_cast<std::byte*>(bucket.sums)
                                          : reinterpret_cast<std::byte*>(bucket.floats);
    call->bytes = static_cast<size_t>(bucket.size) * (bucket.sums != nullptr ? sizeof(int64_t) : sizeof(float));
    return Submit(std::move(call), filled);
  }

  Handle Broadcast(Tag tag, int root, std::byte* memory, size_t bytes, device::Event& filled) override {
    auto call = std::make_shared<Call>(*this, tag);
    call->root = root;
    call->memory = memory;
    call->bytes = bytes;
    return Submit(std::move(call), filled);
  }

  void Abort(const absl::Status& cause) override { host_->Abort(cause); }

 private:
  class Call final : public Pending {
   public:
    Call(LoopbackDeviceCommunicator& owner, Tag tag) : tag(tag), owner_(owner) {}
    bool Done() const override { return ended; }
    absl::Status Wait(absl::Duration limit) override { return owner_.Advance(*this, limit); }

    const Tag tag;
    int root = -1;        // of a broadcast; -1: a reduction
    DeviceBucket bucket;  // of a reduction
    std::byte* memory = nullptr;
    size_t bytes = 0;
    std::unique_ptr<device::Buffer> staging;
    std::unique_ptr<device::Event> staged;
    Handle moved;  // null: the copy to the host is under way
    bool ended = false;
    absl::Status status;

   private:
    LoopbackDeviceCommunicator& owner_;
  };

  Handle Submit(std::shared_ptr<Call> call, device::Event& filled) {
    const absl::Status queued = Queue(*call, filled);
    if (!queued.ok()) return EndedHandle(AsAborted(queued));
    waiting_.push_back(call);
    return call;
  }

  absl::Status Queue(Call& call, device::Event& filled) {
    LS_ASSIGN_OR_RETURN(call.staging, device_.AllocateHost(call.bytes));
    LS_ASSIGN_OR_RETURN(call.staged, device_.NewEvent());
    LS_RETURN_IF_ERROR(stream_->WaitFor(filled));
    if (call.root < 0 || call.root == host_->rank()) {
      LS_RETURN_IF_ERROR(stream_->CopyToHost(call.staging->address(), call.memory, call.bytes));
    }
    return stream_->Record(*call.staged);
  }

  Handle Move(const Call& call) {
    std::byte* const memory = call.staging->address();
    if (call.root >= 0) {
      return host_->Broadcast(call.tag, call.root, absl::MakeSpan(reinterpret_cast<char*>(memory), call.bytes));
    }
    const auto elements = static_cast<size_t>(call.bucket.size);
    return call.bucket.sums != nullptr
               ? host_->AllReduceSum(call.tag, absl::MakeSpan(reinterpret_cast<int64_t*>(memory), elements))
               : host_->AllReduceSum(call.tag, absl::MakeSpan(reinterpret_cast<float*>(memory), elements));
  }

  // Brings every call up to `last` to its end, in the order in which they were made.
  absl::Status Advance(Call& last, absl::Duration limit) {
    while (!last.ended) {
      Call& call = *waiting_.front();
      absl::Status status = EndOne(call, limit);
      if (absl::IsDeadlineExceeded(status)) return status;
      if (!status.ok()) {
        status = AsAborted(status);
        host_->Abort(status);
        (void)stream_->Synchronize();
      }
      call.status = status;
      call.ended = true;
      waiting_.pop_front();
    }
    return last.status;
  }

  absl::Status EndOne(Call& call, absl::Duration limit) {
    const DeviceBucket& bucket = call.bucket;
    if (call.moved == nullptr) {
      LS_RETURN_IF_ERROR(call.staged->Wait());
      call.moved = Move(call);
    }
    LS_RETURN_IF_ERROR(call.moved->Wait(limit));
    if (call.memory == nullptr || call.root == host_->rank()) return absl::OkStatus();
    LS_RETURN_IF_ERROR(stream_->CopyToDevice(call.memory, call.staging->address(), call.bytes));
    if (bucket.sums != nullptr) {
      LS_RETURN_IF_ERROR(device_.step_math().Dequantize(*stream_, *bucket.tensors, 0, bucket.size, bucket.sums,
                                                        bucket.exponents, bucket.floats));
    }
    return stream_->Synchronize();
  }

  const std::unique_ptr<Communicator> host_;
  device::Device& device_;
  const std::unique_ptr<device::Stream> stream_;
  std::deque<std::shared_ptr<Call>> waiting_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeLoopbackOnDevice(std::unique_ptr<Communicator> words,
                                                                   std::unique_ptr<Communicator> buckets,
                                                                   device::Device& device) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Stream> stream, device.NewStream());
  return PairCommunicators(std::move(words),
                           std::make_unique<LoopbackDeviceCommunicator>(std::move(buckets), device, std::move(stream)));
}

}  // namespace lockstep::worker
