#include "worker/collectives/paired_communicator.h"

#include <utility>

namespace lockstep::worker {
namespace {

class PairedCommunicator final : public Communicator {
 public:
  PairedCommunicator(std::shared_ptr<Communicator> host, std::unique_ptr<DeviceCommunicator> device)
      : host_(std::move(host)), device_(std::move(device)) {}
  ~PairedCommunicator() override { Abort(absl::AbortedError("the communicator was closed")); }

  Generation generation() const override { return host_->generation(); }
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  absl::Status status() const override { return host_->status(); }
  uint64_t bytes_moved() const override { return host_->bytes_moved(); }
  DeviceCommunicator* on_device() override { return device_.get(); }

  void Abort(const absl::Status& cause) override {
    host_->Abort(cause);
    // The first cause, which may be another one.
    device_->Abort(host_->status());
  }

  Handle AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) override {
    return host_->AllGather(tag, bytes, block_bytes);
  }
  Handle AllReduceExact(Tag tag, ExactAddends addends, absl::Span<float> out,
                        absl::Span<const ExactRun> runs) override {
    return host_->AllReduceExact(tag, addends, out, runs);
  }
  Handle AllReduceSum(Tag tag, absl::Span<int64_t> values) override { return host_->AllReduceSum(tag, values); }
  Handle AllReduceSum(Tag tag, absl::Span<float> values) override { return host_->AllReduceSum(tag, values); }
  Handle Broadcast(Tag tag, int root, absl::Span<char> bytes) override { return host_->Broadcast(tag, root, bytes); }

 private:
  const std::shared_ptr<Communicator> host_;
  const std::unique_ptr<DeviceCommunicator> device_;
};

}  // namespace

std::unique_ptr<Communicator> PairCommunicators(std::shared_ptr<Communicator> host,
                                                std::unique_ptr<DeviceCommunicator> device) {
  return std::make_unique<PairedCommunicator>(std::move(host), std::move(device));
}

}  // namespace lockstep::worker
