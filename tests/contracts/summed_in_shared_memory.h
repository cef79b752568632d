// A communicator for the contract suite whose exact sums are in memory that ranks of this host share, wherever the
// caller's buffers are.
//
// Threading: as Communicator.
#ifndef LOCKSTEP_TESTS_CONTRACTS_SUMMED_IN_SHARED_MEMORY_H_
#define LOCKSTEP_TESTS_CONTRACTS_SUMMED_IN_SHARED_MEMORY_H_

#include <cstring>
#include <memory>
#include <utility>

#include "common/status/check.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"

namespace lockstep::worker {

class SummedInSharedMemory final : public Communicator {
 public:
  // `memory` is shared memory that `inner` knows, enough for all exact sums together.
  SummedInSharedMemory(std::unique_ptr<Communicator> inner, std::unique_ptr<device::Buffer> memory)
      : memory_(std::move(memory)), inner_(std::move(inner)) {}

  Generation generation() const override { return inner_->generation(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  DeviceCommunicator* on_device() override { return inner_->on_device(); }
  void Abort(const absl::Status& cause) override { inner_->Abort(cause); }
  absl::Status status() const override { return inner_->status(); }
  uint64_t bytes_moved() const override { return inner_->bytes_moved(); }

  Handle AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) override {
    return inner_->AllGather(tag, bytes, block_bytes);
  }
  Handle AllReduceExact(Tag tag, ExactAddends addends, absl::Span<float> out,
                        absl::Span<const ExactRun> runs) override {
    ExactAddends shared;
    if (!addends.values.empty()) shared.values = Copy(addends.values);
    if (!addends.integers.empty()) shared.integers = Copy(addends.integers);
    const absl::Span<float> sums = Copy(absl::Span<const float>(out));
    return std::make_shared<Copied>(inner_->AllReduceExact(tag, shared, sums, runs), sums, out);
  }
  Handle AllReduceSum(Tag tag, absl::Span<int64_t> values) override { return inner_->AllReduceSum(tag, values); }
  Handle AllReduceSum(Tag tag, absl::Span<float> values) override { return inner_->AllReduceSum(tag, values); }
  Handle Broadcast(Tag tag, int root, absl::Span<char> bytes) override { return inner_->Broadcast(tag, root, bytes); }

 private:
  // A call whose result is copied to the caller once it has ended.
  class Copied final : public Pending {
   public:
    Copied(Handle inner, absl::Span<const float> from, absl::Span<float> to)
        : inner_(std::move(inner)), from_(from), to_(to) {}
    bool Done() const override { return inner_->Done(); }
    absl::Status Wait(absl::Duration limit) override {
      const absl::Status status = inner_->Wait(limit);
      if (status.ok() && !to_.empty()) std::memcpy(to_.data(), from_.data(), to_.size() * sizeof(float));
      return status;
    }

   private:
    const Handle inner_;
    const absl::Span<const float> from_;
    const absl::Span<float> to_;
  };

  template <typename T>
  absl::Span<T> Copy(absl::Span<const T> values) {
    const size_t bytes = values.size() * sizeof(T);
    LS_CHECK(used_ + bytes <= memory_->size(), "the memory is enough for all calls");
    T* const begin = reinterpret_cast<T*>(memory_->address() + used_);
    if (bytes > 0) std::memcpy(begin, values.data(), bytes);
    used_ += (bytes + 63) / 64 * 64;
    return {begin, values.size()};
  }

  const std::unique_ptr<device::Buffer> memory_;
  size_t used_ = 0;
  const std::unique_ptr<Communicator> inner_;  // ends before the memory
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONTRACTS_SUMMED_IN_SHARED_MEMORY_H_
