#include "worker/collectives/loopback/loopback_device_communicator.h"

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
    auto call = std::make_shared<Call>(*this, tag, bucket);
    const absl::Status queued = Queue(*call, filled);
    if (!queued.ok()) return EndedHandle(AsAborted(queued));
    waiting_.push_back(call);
    return call;
  }

  void Abort(const absl::Status& cause) override { host_->Abort(cause); }

 private:
  class Call final : public Pending {
   public:
    Call(LoopbackDeviceCommunicator& owner, Tag tag, const DeviceBucket& bucket)
        : tag(tag), bucket(bucket), owner_(owner) {}
    bool Done() const override { return ended; }
    absl::Status Wait(absl::Duration limit) override { return owner_.Advance(*this, limit); }

    std::byte* memory() const {
      return bucket.sums != nullptr ? reinterpret_cast<std::byte*>(bucket.sums)
                                    : reinterpret_cast<std::byte*>(bucket.floats);
    }

    const Tag tag;
    const DeviceBucket bucket;
    std::unique_ptr<device::Buffer> staging;
    std::unique_ptr<device::Event> staged;
    Handle reduced;  // null: the copy to the host is under way
    bool ended = false;
    absl::Status status;

   private:
    LoopbackDeviceCommunicator& owner_;
  };

  absl::Status Queue(Call& call, device::Event& filled) {
    const size_t element = call.bucket.sums != nullptr ? sizeof(int64_t) : sizeof(float);
    LS_ASSIGN_OR_RETURN(call.staging, device_.AllocateHost(static_cast<size_t>(call.bucket.size) * element));
    LS_ASSIGN_OR_RETURN(call.staged, device_.NewEvent());
    LS_RETURN_IF_ERROR(stream_->WaitFor(filled));
    LS_RETURN_IF_ERROR(stream_->CopyToHost(call.staging->address(), call.memory(), call.staging->size()));
    return stream_->Record(*call.staged);
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
    const auto elements = static_cast<size_t>(bucket.size);
    if (call.reduced == nullptr) {
      LS_RETURN_IF_ERROR(call.staged->Wait());
      std::byte* const memory = call.staging->address();
      call.reduced = bucket.sums != nullptr
                         ? host_->AllReduceSum(call.tag, absl::MakeSpan(reinterpret_cast<int64_t*>(memory), elements))
                         : host_->AllReduceSum(call.tag, absl::MakeSpan(reinterpret_cast<float*>(memory), elements));
    }
    LS_RETURN_IF_ERROR(call.reduced->Wait(limit));
    LS_RETURN_IF_ERROR(stream_->CopyToDevice(call.memory(), call.staging->address(), call.staging->size()));
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
