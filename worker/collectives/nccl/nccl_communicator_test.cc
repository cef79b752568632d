// Reducing buckets on devices, over NCCL's stand-in in host execution: what device_communicator.h promises.
#include "worker/collectives/nccl/nccl_communicator.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/status/check.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/nccl/load_nccl.h"
#include "worker/collectives/paired_communicator.h"
#include "worker/device/cuda/make_device.h"

namespace lockstep::worker {
namespace {

using device::TensorRange;

// Three tensors with gaps; sizes that no number of ranks divides.
const std::vector<TensorRange> kRanges = {{0, 1000, 2}, {1008, 37, 0}, {1056, 700, 1}};
constexpr int64_t kRun = 1760;
constexpr int32_t kExponents[] = {-40, -45, -38};

int64_t IntegerOf(int rank, int64_t i) { return (i * 7919 + rank * 104729) * 1000003; }
float ValueOf(int rank, int64_t i) { return static_cast<float>((i * 37 + rank * 911) % 2003 - 1000) * 0.0123f; }

template <typename T>
const std::byte* Raw(const T* values) {
  return reinterpret_cast<const std::byte*>(values);
}

// One rank with a bucket on a device of its own.
class Rank {
 public:
  Rank(const nccl::Api& api, std::unique_ptr<Communicator> host) : device_(*device::MakeCudaDevice({})) {
    Communicator& inner = *host;
    rank_ = inner.rank();
    auto on_device = ConnectNccl(api, inner, {});
    connected_ = on_device.status();
    if (!connected_.ok()) {
      unconnected_ = std::move(host);
      return;
    }
    communicator_ = PairCommunicators(std::move(host), *std::move(on_device));
    stream_ = *device_->NewStream();
    filled_ = *device_->NewEvent();
    table_ = *device_->step_math().MakeTensorTable(kRanges);
    sums_ = *device_->Allocate(kRun * sizeof(int64_t));
    floats_ = *device_->Allocate(kRun * sizeof(float));
    exponents_ = *device_->Allocate(sizeof kExponents);
  }

  ~Rank() {
    // What is queued uses the members.
    communicator_ = nullptr;
    if (stream_ != nullptr) (void)stream_->Synchronize();
  }

  // Contributes to a sum of integers, or of floats.
  Handle Contribute(bool exact) {
    host_sums_.assign(kRun, 0);
    host_floats_.assign(kRun, 0.0f);
    for (const TensorRange& range : kRanges) {
      for (int64_t i = range.begin; i < range.begin + range.size; ++i) {
        host_sums_[static_cast<size_t>(i)] = IntegerOf(rank_, i);
        host_floats_[static_cast<size_t>(i)] = ValueOf(rank_, i);
      }
    }
    LS_CHECK(stream_->CopyToDevice(sums_->address(), Raw(host_sums_.data()), sums_->size()).ok(),
             "the test's own work is queued");
    LS_CHECK(stream_->CopyToDevice(floats_->address(), Raw(host_floats_.data()), floats_->size()).ok(),
             "the test's own work is queued");
    LS_CHECK(stream_->CopyToDevice(exponents_->address(), Raw(kExponents), sizeof kExponents).ok(),
             "the test's own work is queued");
    LS_CHECK(stream_->Record(*filled_).ok(), "the test's own work is queued");
    DeviceBucket bucket{.tensors = table_.get(), .size = kRun};
    if (exact) bucket.sums = reinterpret_cast<int64_t*>(sums_->address());
    if (exact) bucket.exponents = reinterpret_cast<const int32_t*>(exponents_->address());
    bucket.floats = reinterpret_cast<float*>(floats_->address());
    return communicator_->on_device()->Reduce({7, 0}, bucket, *filled_);
  }

  // Takes part in a broadcast of as many bytes as it holds; keeps nothing of it without `keeps`.
  Handle Broadcast(int root, bool keeps, const std::vector<char>& own) {
    // A handle of a broken communicator ends without the copy that was queued before it.
    LS_CHECK(stream_->Synchronize().ok(), "the test's own work is queued");
    host_state_ = own;
    if (state_ == nullptr) state_ = *device_->Allocate(own.size());
    LS_CHECK(stream_->CopyToDevice(state_->address(), Raw(host_state_.data()), own.size()).ok(),
             "the test's own work is queued");
    LS_CHECK(stream_->Record(*filled_).ok(), "the test's own work is queued");
    std::byte* const memory = keeps || root == rank_ ? state_->address() : nullptr;
    return communicator_->on_device()->Broadcast({7, 0}, root, memory, own.size(), *filled_);
  }
  std::vector<char> State() {
    std::vector<char> host(state_->size());
    LS_CHECK(stream_->CopyToHost(reinterpret_cast<std::byte*>(host.data()), state_->address(), host.size()).ok(),
             "the test's own work is queued");
    LS_CHECK(stream_->Synchronize().ok(), "the test's own work is queued");
    return host;
  }

  std::vector<float> Floats() {
    std::vector<float> host(kRun);
    LS_CHECK(stream_->CopyToHost(reinterpret_cast<std::byte*>(host.data()), floats_->address(), floats_->size()).ok(),
             "the test's own work is queued");
    LS_CHECK(stream_->Synchronize().ok(), "the test's own work is queued");
    return host;
  }

  const absl::Status& connected() const { return connected_; }
  // Of the host's communicator, where the devices were not connected.
  absl::Status host_status() const { return unconnected_->status(); }
  Communicator& communicator() { return *communicator_; }
  void Close() { communicator_ = nullptr; }

 private:
  std::unique_ptr<device::Device> device_;
  absl::Status connected_;
  std::unique_ptr<Communicator> unconnected_;
  int rank_ = 0;
  std::unique_ptr<device::Stream> stream_;
  std::unique_ptr<device::Event> filled_;
  std::unique_ptr<device::TensorTable> table_;
  std::unique_ptr<device::Buffer> sums_, floats_, exponents_, state_;
  std::vector<int64_t> host_sums_;
  std::vector<float> host_floats_;
  std::vector<char> host_state_;
  std::unique_ptr<Communicator> communicator_;
};

// Runs `act` for every rank on a thread of its own, the device's owner, and returns what each returned.
std::vector<absl::Status> WithRanks(int ranks, const std::function<absl::Status(int, Rank&)>& act) {
  std::vector<std::unique_ptr<Communicator>> hosts = MakeLoopback(Generation{1, 1}, ranks);
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  std::latch all_done(ranks);  // a communicator that closes breaks those that have not come so far
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(**nccl::LoadNccl(), std::move(hosts[static_cast<size_t>(r)]));
      results[static_cast<size_t>(r)] = rank.connected().ok() ? act(r, rank) : rank.connected();
      all_done.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

constexpr absl::Duration kLimit = absl::Seconds(30);

void CheckAllOk(const std::vector<absl::Status>& results) {
  for (const absl::Status& result : results) CHECK(result == absl::OkStatus());
}

TEST_CASE("nccl: exact sums have the same bits for any number of ranks that contribute the same", "[cuda]") {
  for (const int ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    std::vector<std::vector<float>> results(static_cast<size_t>(ranks));
    CheckAllOk(WithRanks(ranks, [&](int r, Rank& rank) {
      absl::Status status;
      for (int repeat = 0; repeat < 3; ++repeat) status.Update(rank.Contribute(true)->Wait(kLimit));
      results[static_cast<size_t>(r)] = rank.Floats();
      return status;
    }));
    for (const TensorRange& range : kRanges) {
      std::vector<int64_t> sums(static_cast<size_t>(range.size), 0);
      for (int64_t i = 0; i < range.size; ++i) {
        for (int r = 0; r < ranks; ++r) sums[static_cast<size_t>(i)] += IntegerOf(r, range.begin + i);
      }
      std::vector<float> expected(sums.size());
      Dequantize(sums, kExponents[range.index], absl::MakeSpan(expected));
      for (const std::vector<float>& result : results) {
        const auto first = result.begin() + range.begin;
        CHECK(std::vector<float>(first, first + range.size) == expected);
      }
    }
  }
}

TEST_CASE("nccl: native sums are formed in the order of ranks", "[cuda]") {
  std::vector<float> result;
  CheckAllOk(WithRanks(3, [&](int r, Rank& rank) {
    absl::Status status = rank.Contribute(false)->Wait(kLimit);
    const std::vector<float> floats = rank.Floats();
    if (r == 2) result = floats;
    return status;
  }));
  for (const TensorRange& range : kRanges) {
    for (int64_t i = range.begin; i < range.begin + range.size; ++i) {
      REQUIRE(result[static_cast<size_t>(i)] == ValueOf(0, i) + ValueOf(1, i) + ValueOf(2, i));
    }
  }
}

// More than two of the pieces that a broadcast goes in, and no multiple of anything.
std::vector<char> StateOf(int rank) {
  std::vector<char> state((size_t{5} << 20) + 13);
  for (size_t i = 0; i < state.size(); ++i) state[i] = static_cast<char>(i * 31 + i / 997 + static_cast<size_t>(rank));
  return state;
}

TEST_CASE("nccl: a broadcast brings the root's bytes to those who keep them, and touches nobody else's", "[cuda]") {
  for (const int ranks : {1, 2, 4}) {
    for (int root = 0; root < ranks; ++root) {
      CAPTURE(ranks, root);
      const int bystander = ranks > 2 ? (root + 2) % ranks : -1;
      std::vector<std::vector<char>> states(static_cast<size_t>(ranks));
      CheckAllOk(WithRanks(ranks, [&](int r, Rank& rank) {
        const std::vector<char> own = StateOf(r);
        absl::Status status = rank.Broadcast(root, r != bystander, own)->Wait(kLimit);
        // Another kind of call behind it meets the same ranks.
        status.Update(rank.Contribute(true)->Wait(kLimit));
        states[static_cast<size_t>(r)] = rank.State();
        return status;
      }));
      for (int r = 0; r < ranks; ++r) CHECK((states[static_cast<size_t>(r)] == StateOf(r == bystander ? r : root)));
    }
  }
}

TEST_CASE("nccl: a broadcast whose root is gone, or that is aborted, ends with the cause", "[cuda]") {
  const bool aborts = GENERATE(false, true);
  const std::vector<absl::Status> results = WithRanks(3, [&](int r, Rank& rank) {
    const absl::Status first = rank.Broadcast(2, true, StateOf(r))->Wait(kLimit);
    if (!first.ok()) return first;
    if (r == 2) {
      if (aborts) rank.communicator().Abort(absl::AbortedError("the chief says so"));
      if (!aborts) rank.Close();
      return absl::OkStatus();
    }
    return rank.Broadcast(2, true, StateOf(r))->Wait(kLimit);
  });
  CHECK(results[2].ok());
  for (int r = 0; r < 2; ++r) {
    CHECK(absl::IsAborted(results[static_cast<size_t>(r)]));
    if (aborts) {
      CHECK_THAT(std::string(results[static_cast<size_t>(r)].message()),
                 Catch::Matchers::Contains("the chief says so"));
    }
  }
}

TEST_CASE("nccl: an abort on one rank ends the buckets of every rank with its cause", "[cuda]") {
  const absl::Status cause = absl::AbortedError("the chief says so");
  const std::vector<absl::Status> results = WithRanks(3, [&](int r, Rank& rank) {
    const absl::Status first = rank.Contribute(true)->Wait(kLimit);
    if (!first.ok()) return first;
    if (r == 1) rank.communicator().Abort(cause);
    return rank.Contribute(true)->Wait(kLimit);
  });
  CHECK(results[1] == cause);
  for (const absl::Status& result : results) {
    CHECK(absl::IsAborted(result));
    CHECK_THAT(std::string(result.message()), Catch::Matchers::Contains("the chief says so"));
  }
}

TEST_CASE("nccl: a rank that is gone breaks the others, who are not left waiting", "[cuda]") {
  const std::vector<absl::Status> results = WithRanks(3, [&](int r, Rank& rank) {
    const absl::Status first = rank.Contribute(true)->Wait(kLimit);
    if (!first.ok()) return first;
    if (r == 2) {
      rank.Close();
      return absl::OkStatus();
    }
    const absl::Status second = rank.Contribute(true)->Wait(kLimit);
    return second.ok() || rank.communicator().status().ok() ? absl::InternalError("it did not break") : second;
  });
  CHECK(results[2].ok());
  CHECK(absl::IsAborted(results[0]));
  CHECK(absl::IsAborted(results[1]));
}

TEST_CASE("nccl: connecting ends when the host communicator breaks", "[cuda]") {
  std::vector<std::unique_ptr<Communicator>> hosts = MakeLoopback(Generation{1, 2}, 2);
  hosts[1]->Abort(absl::AbortedError("it never came"));

  const auto connected = ConnectNccl(**nccl::LoadNccl(), *hosts[0], {});

  CHECK(absl::IsAborted(connected.status()));
}

// Connects ranks by `api` and returns what came of it, per rank. `meanwhile` gets rank 0's host communicator.
std::vector<absl::Status> Connect(const nccl::Api& api, int ranks, std::vector<absl::Status>* host_statuses,
                                  const std::function<void(Communicator&)>& meanwhile = nullptr) {
  std::vector<std::unique_ptr<Communicator>> hosts = MakeLoopback(Generation{1, 1}, ranks);
  std::vector<absl::Status> results(static_cast<size_t>(ranks));
  host_statuses->resize(static_cast<size_t>(ranks));
  std::latch all_done(ranks + 1);
  std::vector<std::thread> threads;
  Communicator& first = *hosts[0];
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      const Rank rank(api, std::move(hosts[static_cast<size_t>(r)]));
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

TEST_CASE("nccl: a rank 0 that can make no unique id tells the others, and the host communicator lives on", "[cuda]") {
  nccl::Api api = **nccl::LoadNccl();
  api.get_unique_id = [](nccl::UniqueId*) { return nccl::kSystemError; };
  std::vector<absl::Status> hosts;

  const std::vector<absl::Status> results = Connect(api, 3, &hosts);

  for (size_t r = 0; r < results.size(); ++r) {
    INFO("rank " << r << ": " << results[r]);
    CHECK(absl::IsUnavailable(results[r]));
    CHECK_THAT(std::string(results[r].message()), Catch::Contains("unique id"));
    CHECK(hosts[r] == absl::OkStatus());
  }
}

// How many calls are under way that will never be queued.
std::atomic<int> stuck{0};

TEST_CASE("nccl: a first call that is never queued ends when the host communicator breaks", "[cuda]") {
  nccl::Api api = **nccl::LoadNccl();
  stuck = 0;
  api.all_reduce = [](const void*, void*, size_t, nccl::DataType, nccl::ReduceOp, nccl::Comm,
                      device::cuda::StreamHandle) {
    ++stuck;
    return nccl::kInProgress;
  };
  api.comm_get_async_error = [](nccl::Comm, nccl::Result* error) {
    *error = stuck == 0 ? nccl::kSuccess : nccl::kInProgress;
    return nccl::kSuccess;
  };
  std::vector<absl::Status> hosts;

  const std::vector<absl::Status> results = Connect(api, 2, &hosts, [](Communicator& host) {
    while (stuck == 0) std::this_thread::yield();
    host.Abort(absl::AbortedError("the verdict"));
  });

  for (const absl::Status& result : results) CHECK_THAT(std::string(result.message()), Catch::Contains("the verdict"));
}

}  // namespace
}  // namespace lockstep::worker
