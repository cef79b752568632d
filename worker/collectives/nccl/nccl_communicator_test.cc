// Reducing buckets on devices, over NCCL's stand-in in host execution: what device_communicator.h promises.
#include "worker/collectives/nccl/nccl_communicator.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "worker/arithmetic/exact_sum.h"
#include "worker/collectives/device_communicator.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/nccl/load_nccl.h"
#include "worker/collectives/nccl/nccl_harness.h"

namespace lockstep::worker {
namespace {

using device::TensorRange;

void CheckAllOk(const std::vector<absl::Status>& results) {
  for (const absl::Status& result : results) CHECK(result == absl::OkStatus());
}

TEST_CASE("nccl: exact sums have the same bits for any number of ranks that contribute the same", "[cuda]") {
  for (const int ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    std::vector<std::vector<float>> results(static_cast<size_t>(ranks));
    CheckAllOk(WithRanks(ranks, [&](int r, NcclRank& rank) {
      absl::Status status;
      for (int repeat = 0; repeat < 3; ++repeat) status.Update(rank.Contribute(true)->Wait(kLimit));
      results[static_cast<size_t>(r)] = rank.Floats();
      return status;
    }));
    for (const TensorRange& range : RangesOfBucket()) {
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
  CheckAllOk(WithRanks(3, [&](int r, NcclRank& rank) {
    absl::Status status = rank.Contribute(false)->Wait(kLimit);
    const std::vector<float> floats = rank.Floats();
    if (r == 2) result = floats;
    return status;
  }));
  for (const TensorRange& range : RangesOfBucket()) {
    for (int64_t i = range.begin; i < range.begin + range.size; ++i) {
      REQUIRE(result[static_cast<size_t>(i)] == ValueOf(0, i) + ValueOf(1, i) + ValueOf(2, i));
    }
  }
}

// More than two of the pieces that a broadcast goes in, and no multiple of anything.
std::vector<char> StateOf(int rank) {
  std::vector<char> state(2 * kDevicePieceBytes + 13);
  for (size_t i = 0; i < state.size(); ++i) state[i] = static_cast<char>(i * 31 + i / 997 + static_cast<size_t>(rank));
  return state;
}

TEST_CASE("nccl: a broadcast brings the root's bytes to those who keep them, and touches nobody else's", "[cuda]") {
  for (const int ranks : {1, 2, 3}) {
    for (int root = 0; root < ranks; ++root) {
      CAPTURE(ranks, root);
      const int bystander = ranks > 2 ? (root + 2) % ranks : -1;
      std::vector<std::vector<char>> states(static_cast<size_t>(ranks));
      CheckAllOk(WithRanks(ranks, [&](int r, NcclRank& rank) {
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
  const std::vector<absl::Status> results = WithRanks(3, [&](int r, NcclRank& rank) {
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
  const std::vector<absl::Status> results = WithRanks(3, [&](int r, NcclRank& rank) {
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
  const std::vector<absl::Status> results = WithRanks(3, [&](int r, NcclRank& rank) {
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

TEST_CASE("nccl: a rank 0 that can make no unique id tells the others, and the host communicator lives on", "[cuda]") {
  nccl::Api api = **nccl::LoadNccl();
  api.get_unique_id = [](nccl::UniqueId*) { return nccl::kSystemError; };
  std::vector<absl::Status> hosts;

  const std::vector<absl::Status> results = ConnectRanks(api, 3, &hosts);

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

  const std::vector<absl::Status> results = ConnectRanks(api, 2, &hosts, [](Communicator& host) {
    while (stuck == 0) std::this_thread::yield();
    host.Abort(absl::AbortedError("the verdict"));
  });

  for (const absl::Status& result : results) CHECK_THAT(std::string(result.message()), Catch::Contains("the verdict"));
}

}  // namespace
}  // namespace lockstep::worker
