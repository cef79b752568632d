#include "worker/collectives/nccl/nccl_harness.h"

#include <latch>
#include <thread>
#include <utility>

#include "common/status/check.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/nccl/load_nccl.h"
#include "worker/collectives/paired_communicator.h"
#include "worker/device/cuda/make_device.h"

namespace lockstep::worker {
namespace {

template <typename T>
const std::byte* Raw(const T* values) {
  return reinterpret_cast<const std::byte*>(values);
}

void MustQueue(const absl::Status& status) { LS_CHECK(status.ok(), "the test's own work is queued"); }

}  // namespace

const std::vector<device::TensorRange>& RangesOfBucket() {
  static const auto* const ranges = new std::vector<device::TensorRange>{{0, 1000, 2}, {1008, 37, 0}, {1056, 700, 1}};
  return *ranges;
}

NcclRank::NcclRank(const nccl::Api& api, std::unique_ptr<Communicator> host, const NcclOptions& options)
    : device_(*device::MakeCudaDevice({})) {
  Communicator& inner = *host;
  rank_ = inner.rank();
  auto on_device = ConnectNccl(api, inner, options);
  connected_ = on_device.status();
  if (!connected_.ok()) {
    unconnected_ = std::move(host);
    return;
  }
  communicator_ = PairCommunicators(std::move(host), *std::move(on_device));
  stream_ = *device_->NewStream();
  filled_ = *device_->NewEvent();
  table_ = *device_->step_math().MakeTensorTable(RangesOfBucket());
  sums_ = *device_->Allocate(kRun * sizeof(int64_t));
  floats_ = *device_->Allocate(kRun * sizeof(float));
  exponents_ = *device_->Allocate(sizeof kExponents);
}

NcclRank::~NcclRank() {
  // What is queued uses the members.
  communicator_ = nullptr;
  if (stream_ != nullptr) (void)stream_->Synchronize();
}

DeviceBucket NcclRank::Bucket(bool exact) const {
  DeviceBucket bucket{.tensors = table_.get(), .size = kRun};
  if (exact) bucket.sums = reinterpret_cast<int64_t*>(sums_->address());
  if (exact) bucket.exponents = reinterpret_cast<const int32_t*>(exponents_->address());
  bucket.floats = reinterpret_cast<float*>(floats_->address());
  return bucket;
}

Handle NcclRank::Contribute(bool exact) {
  host_sums_.assign(kRun, 0);
  host_floats_.assign(kRun, 0.0f);
  for (const device::TensorRange& range : RangesOfBucket()) {
    for (int64_t i = range.begin; i < range.begin + range.size; ++i) {
      host_sums_[static_cast<size_t>(i)] = IntegerOf(rank_, i);
      host_floats_[static_cast<size_t>(i)] = ValueOf(rank_, i);
    }
  }
  MustQueue(stream_->CopyToDevice(sums_->address(), Raw(host_sums_.data()), sums_->size()));
  MustQueue(stream_->CopyToDevice(floats_->address(), Raw(host_floats_.data()), floats_->size()));
  MustQueue(stream_->CopyToDevice(exponents_->address(), Raw(kExponents), sizeof kExponents));
  MustQueue(stream_->Record(*filled_));
  return communicator_->on_device()->Reduce({7, 0}, Bucket(exact), *filled_);
}

Handle NcclRank::ContributeAgain() { return communicator_->on_device()->Reduce({7, 0}, Bucket(true), *filled_); }

Handle NcclRank::Broadcast(int root, bool keeps, const std::vector<char>& own) {
  // A handle of a broken communicator ends without the copy that was queued before it.
  MustQueue(stream_->Synchronize());
  host_state_ = own;
  if (state_ == nullptr) state_ = *device_->Allocate(own.size());
  MustQueue(stream_->CopyToDevice(state_->address(), Raw(host_state_.data()), own.size()));
  MustQueue(stream_->Record(*filled_));
  std::byte* const memory = keeps || root == rank_ ? state_->address() : nullptr;
  return communicator_->on_device()->Broadcast({7, 0}, root, memory, own.size(), *filled_);
}

Handle NcclRank::PassOn(int root, size_t bytes) {
  return communicator_->on_device()->Broadcast({7, 0}, root, nullptr, bytes, *filled_);
}

std::vector<char> NcclRank::State() {
  std::vector<char> host(state_->size());
  MustQueue(stream_->CopyToHost(reinterpret_cast<std::byte*>(host.data()), state_->address(), host.size()));
  MustQueue(stream_->Synchronize());
  return host;
}

std::vector<float> NcclRank::Floats() {
  std::vector<float> host(kRun);
  MustQueue(stream_->CopyToHost(reinterpret_cast<std::byte*>(host.data()), floats_->address(), floats_->size()));
  MustQueue(stream_->Synchronize());
  return host;
}

std::vector<absl::Status> WithRanks(const nccl::Api& api, int ranks,
                                    const std::function<absl::Status(int, NcclRank&)>& act,
                                    const NcclOptions& options) {
  std::vector<std::unique_ptr<Communicator>> hosts = MakeLoopback(Generation{1, 1}, ranks);
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  std::latch all_done(ranks);  // a communicator that closes breaks those that have not come so far
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      NcclRank rank(api, std::move(hosts[static_cast<size_t>(r)]), options);
      results[static_cast<size_t>(r)] = rank.connected().ok() ? act(r, rank) : rank.connected();
      all_done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::vector<absl::Status> WithRanks(int ranks, const std::function<absl::Status(int, NcclRank&)>& act,
                                    const NcclOptions& options) {
  return WithRanks(**nccl::LoadNccl(), ranks, act, options);
}

std::vector<absl::Status> ConnectRanks(const nccl::Api& api, int ranks, std::vector<absl::Status>* host_statuses,
                                       const std::function<void(Communicator&)>& meanwhile,
                                       const NcclOptions& options) {
  std::vector<std::unique_ptr<Communicator>> hosts = MakeLoopback(Generation{1, 1}, ranks);
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  host_statuses->resize(static_cast<size_t>(ranks));
  std::latch all_done(ranks + 1);
  std::vector<std::thread> threads;
  Communicator& first = *hosts[0];
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const NcclRank rank(api, std::move(hosts[static_cast<size_t>(r)]), options);
      results[static_cast<size_t>(r)] = rank.connected();
      if (!rank.connected().ok()) (*host_statuses)[static_cast<size_t>(r)] = rank.host_status();
      all_done.arrive_and_wait();
    });
  }
  if (meanwhile != nullptr) meanwhile(first);
  all_done.count_down();
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace lockstep::worker
