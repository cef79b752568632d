// NCCL under faults, by its stand-in: peers that die, calls that fail or do not return, devices that are lost.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <latch>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/status/exit_code.h"
#include "worker/collectives/device_communicator.h"
#include "worker/collectives/nccl/load_nccl.h"
#include "worker/collectives/nccl/nccl_harness.h"
#include "worker/collectives/nccl/nccl_on_host.h"
#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"
#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

std::atomic<bool> counts{false};
std::atomic<int> broadcasts{0};
std::atomic<int> gathers{0};

TEST_CASE("nccl: a peer that dies leaves nobody in a launch, however much is queued", "[cuda]") {
  const bool state = GENERATE(true, false);
  CAPTURE(state);
  nccl::Api api = **nccl::LoadNccl();
  counts = false;
  broadcasts = gathers = 0;
  api.broadcast = [](const void* send, void* receive, size_t count, nccl::DataType type, int root, nccl::Comm comm,
                     device::cuda::StreamHandle stream) {
    if (counts) ++broadcasts;
    return (*nccl::LoadNccl())->broadcast(send, receive, count, type, root, comm, stream);
  };
  api.all_gather = [](const void* send, void* receive, size_t count, nccl::DataType type, nccl::Comm comm,
                      device::cuda::StreamHandle stream) {
    if (counts) ++gathers;
    return (*nccl::LoadNccl())->all_gather(send, receive, count, type, comm, stream);
  };
  constexpr int kMany = 300;
  constexpr int kUnderWay = kDeviceCallsUnderWay;

  const std::vector<absl::Status> results = WithRanks(api, 2, [&](int r, NcclRank& rank) {
    absl::Status status = rank.Contribute(true)->Wait(kLimit);
    if (!status.ok()) return status;
    if (r == 0) {
      counts = true;
      if (state) return rank.PassOn(1, size_t{64} << 30)->Wait(kLimit);
      for (int i = 0; i < kMany; ++i) status.Update(rank.ContributeAgain()->Wait(absl::ZeroDuration()));
      return rank.ContributeAgain()->Wait(kLimit);
    }
    while (broadcasts + gathers < kUnderWay) std::this_thread::yield();
    rank.Close();
    return status;
  });

  CHECK(absl::IsAborted(results[0]));
  CHECK(results[1].ok());
  CHECK(broadcasts + gathers == kUnderWay);
}

// What a kernel that touches memory of a peer that is gone leaves behind, in the stream of whoever takes it first.
std::atomic<bool> loses_device{false};
std::latch* called = nullptr;

nccl::Api ApiThatLosesADevice() {
  nccl::Api api = **nccl::LoadNccl();
  api.all_gather = [](const void* send, void* receive, size_t count, nccl::DataType type, nccl::Comm comm,
                      device::cuda::StreamHandle stream) {
    if (!loses_device.exchange(false)) {
      return (*nccl::LoadNccl())->all_gather(send, receive, count, type, comm, stream);
    }
    const absl::Status queued = device::cuda::EnqueueFallible(stream, [] {
      called->wait();
      return device::MarkDeviceLost(absl::InternalError("an illegal memory access"));
    });
    return queued.ok() ? nccl::kSuccess : nccl::kUnhandledCudaError;
  };
  return api;
}

TEST_CASE("nccl: a device that is lost is known as such by every handle, whoever broke the communicator", "[cuda]") {
  const bool aborted_first = GENERATE(false, true);
  CAPTURE(aborted_first);
  std::latch both_called(1);
  called = &both_called;
  absl::Status lost[2];
  std::barrier both(2);

  const std::vector<absl::Status> results = WithRanks(ApiThatLosesADevice(), 2, [&](int r, NcclRank& rank) {
    const absl::Status first = rank.Contribute(true)->Wait(kLimit);
    both.arrive_and_wait();
    if (r == 0) loses_device = true;
    both.arrive_and_wait();
    const Handle handle = r == 0 ? rank.Contribute(true) : nullptr;
    both.arrive_and_wait();
    if (r == 1) {
      const Handle other = rank.Contribute(true);
      both.arrive_and_wait();
      if (aborted_first) rank.communicator().Abort(absl::AbortedError("a peer is gone"));
      return absl::IsAborted(other->Wait(kLimit)) ? first : absl::InternalError("it went on without a peer");
    }
    both.arrive_and_wait();  // both ranks are of one process here, whose every call fails from now on
    if (aborted_first) {
      while (rank.communicator().status().ok()) std::this_thread::yield();
      rank.communicator().Abort(rank.communicator().status());
    }
    both_called.count_down();
    lost[0] = handle->Wait(kLimit);
    rank.communicator().Abort(lost[0]);
    lost[1] = rank.ContributeAgain()->Wait(kLimit);
    return first;
  });

  device::cuda::ForgetLostHostGpu();
  for (const absl::Status& result : results) CHECK(result.ok());
  for (const absl::Status& status : lost) {
    INFO(status);
    CHECK(absl::IsAborted(status));
    CHECK(device::IsDeviceLost(status));
  }
}

// Faults of the stand-in for as long as a test runs.
struct WithFaults {
  explicit WithFaults(const nccl::HostNcclFaults& faults) { nccl::SetHostNccl(faults); }
  ~WithFaults() { nccl::SetHostNccl({}); }
};

TEST_CASE("nccl: work that is in progress for long is waited for, and ends as any other", "[cuda]") {
  const WithFaults slow({.questions = 100});
  std::vector<float> floats[2];

  const std::vector<absl::Status> results = WithRanks(2, [&](int r, NcclRank& rank) {
    absl::Status status = rank.Contribute(true)->Wait(kLimit);
    status.Update(rank.Broadcast(1, r == 0, std::vector<char>(100))->Wait(kLimit));
    status.Update(rank.Contribute(false)->Wait(kLimit));
    floats[r] = rank.Floats();
    return status;
  });

  for (const absl::Status& result : results) CHECK(result == absl::OkStatus());
  for (const device::TensorRange& range : RangesOfBucket()) {
    for (int64_t i = range.begin; i < range.begin + range.size; ++i) {
      REQUIRE(floats[0][static_cast<size_t>(i)] == ValueOf(0, i) + ValueOf(1, i));
    }
  }
  CHECK(floats[0] == floats[1]);
}

TEST_CASE("nccl: work that stays in progress ends when the communicator breaks", "[cuda]") {
  const WithFaults none({});
  std::barrier both(2);

  const std::vector<absl::Status> results = WithRanks(2, [&](int r, NcclRank& rank) {
    const absl::Status first = rank.Contribute(true)->Wait(kLimit);
    both.arrive_and_wait();
    if (r == 0) nccl::SetHostNccl({.questions = std::numeric_limits<int>::max()});
    both.arrive_and_wait();
    if (r == 0) return rank.Contribute(true)->Wait(kLimit);
    rank.communicator().Abort(absl::AbortedError("the verdict"));
    return first;
  });

  CHECK_THAT(std::string(results[0].message()), Catch::Contains("the verdict"));
  CHECK(results[1].ok());
}

TEST_CASE("nccl: a call that fails breaks the communicator of every rank", "[cuda]") {
  using nccl::Function;
  const Function failing =
      GENERATE(Function::kCommGetAsyncError, Function::kGroupStart, Function::kGroupEnd, Function::kAllReduce,
               Function::kReduceScatter, Function::kAllGather, Function::kBroadcast);
  const int well = GENERATE(0, 3);
  CAPTURE(static_cast<int>(failing), well);
  const WithFaults none({});
  std::barrier both(2);

  const std::vector<absl::Status> results = WithRanks(2, [&](int r, NcclRank& rank) {
    absl::Status status = rank.Contribute(true)->Wait(kLimit);
    both.arrive_and_wait();
    if (r == 0) nccl::SetHostNccl({.failing = failing, .well = well});
    both.arrive_and_wait();
    const std::vector<char> state(100);
    for (int i = 0; status.ok(); ++i) {
      status = (i % 3 == 2 ? rank.Broadcast(0, true, state) : rank.Contribute(i % 3 == 0))->Wait(kLimit);
    }
    return status;
  });

  CHECK(nccl::HostNcclFailed());
  for (const absl::Status& result : results) {
    CHECK(absl::IsAborted(result));
    CHECK_THAT(std::string(result.message()), Catch::Contains("NCCL failed while "));
  }
}

TEST_CASE("nccl: a call that fails while ranks connect leaves nobody connecting, and the host communicator alive",
          "[cuda]") {
  using nccl::Function;
  const Function failing =
      GENERATE(Function::kCommInitRankConfig, Function::kCommGetAsyncError, Function::kGroupStart, Function::kGroupEnd,
               Function::kAllReduce, Function::kReduceScatter, Function::kAllGather, Function::kBroadcast);
  CAPTURE(static_cast<int>(failing));
  const WithFaults faults({.failing = failing});
  std::vector<absl::Status> hosts;
  // A rank that waits for another one, which failed before it came, waits for so long.
  const NcclOptions options{.connect_timeout = absl::Milliseconds(500)};

  const std::vector<absl::Status> results = ConnectRanks(**nccl::LoadNccl(), 2, &hosts, nullptr, options);

  CHECK(nccl::HostNcclFailed());
  CHECK((absl::IsUnavailable(results[0]) || absl::IsUnavailable(results[1])));
  for (const absl::Status& host : hosts) CHECK(host == absl::OkStatus());
}

// ---- calls that do not return: each in a process of its own, which ends

// How this program ends that runs the test case `name` alone, and what it says.
struct Ending {
  int code = -1;
  std::string words;
};
Ending EndingOf(const char* name) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    alarm(60);                                           // where nothing ends it
    setenv("TSAN_OPTIONS", "report_thread_leaks=0", 1);  // of a process that ends in the middle of its work
    execl("/proc/self/exe", "nccl_faults_test", name, static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  Ending ending;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;) ending.words.append(buffer, got);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) ending.code = WEXITSTATUS(status);
  return ending;
}

constexpr absl::Duration kShort = absl::Milliseconds(100);
constexpr char kHangingAbort[] = "nccl: (process) an abort that does not return";
constexpr char kHangingCall[] = "nccl: (process) a call that does not return";
constexpr char kHangingConnect[] = "nccl: (process) a connection that does not return";

TEST_CASE(kHangingAbort, "[.process]") {
  nccl::SetHostNccl({.abort_hangs = true});
  WithRanks(2,
            [](int, NcclRank& rank) {
              rank.communicator().Abort(absl::AbortedError("the verdict"));
              return rank.Contribute(true)->Wait(absl::InfiniteDuration());
            },
            {.abort_limit = kShort});
}

std::atomic<bool> hangs{false};

TEST_CASE(kHangingCall, "[.process]") {
  nccl::Api api = **nccl::LoadNccl();
  counts = false;
  api.reduce_scatter = [](const void* send, void* receive, size_t count, nccl::DataType type, nccl::ReduceOp op,
                          nccl::Comm comm, device::cuda::StreamHandle stream) {
    while (counts) {
      hangs = true;
      pause();
    }
    return (*nccl::LoadNccl())->reduce_scatter(send, receive, count, type, op, comm, stream);
  };
  WithRanks(api, 2,
            [](int r, NcclRank& rank) {
              const absl::Status first = rank.Contribute(true)->Wait(kLimit);
              counts = r == 0 || counts;
              if (r == 0) return rank.Contribute(true)->Wait(absl::InfiniteDuration());
              while (!hangs) std::this_thread::yield();
              rank.Close();
              return first;
            },
            {.watch_interval = absl::ZeroDuration(), .abort_limit = kShort});
}

TEST_CASE(kHangingConnect, "[.process]") {
  nccl::SetHostNccl({.connect_hangs = true});
  WithRanks(2, [](int, NcclRank&) { return absl::OkStatus(); }, {.connect_timeout = kShort, .abort_limit = kShort});
}

TEST_CASE("nccl: a call that does not return ends the process, to be started again", "[cuda]") {
  const auto [name, words] = GENERATE(std::pair(kHangingAbort, "NCCL did not return from aborting within 100ms"),
                                      std::pair(kHangingCall, "NCCL did not return from aborting within 100ms"),
                                      std::pair(kHangingConnect, "NCCL did not return from connecting"));
  CAPTURE(name);

  const Ending ending = EndingOf(name);

  CHECK(ending.code == kExitPreempted);
  CHECK_THAT(ending.words, Catch::Contains(words));
}

}  // namespace
}  // namespace lockstep::worker
