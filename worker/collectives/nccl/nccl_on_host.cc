// NCCL's stand-in in host execution: the calls of nccl_api.h between processes of one machine (host_link.h). What it
// keeps of NCCL's behaviour: nothing blocks a caller but a full stream, work runs in streams, calls of a group are
// queued by its end, a lost peer is an asynchronous error while the stream hangs, and an abort lets the stream go on
// with whatever is in the buffers. Two calls at a time on one communicator end the process.
#include "worker/collectives/nccl/nccl_on_host.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "worker/collectives/nccl/host_link.h"
#include "worker/collectives/nccl/load_nccl.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"

namespace lockstep::worker::nccl {
namespace {

[[noreturn]] void NeverReturn() {
  for (;;) pause();
}

// The faults that were asked for.
class Faults {
 public:
  static Faults& Get() {
    static auto* faults = new Faults;
    return *faults;
  }
  void Set(const HostNcclFaults& faults) {
    const std::lock_guard<std::mutex> lock(mutex_);
    faults_ = faults;
    failed_ = false;
  }
  HostNcclFaults faults() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return faults_;
  }
  // Whether this call fails.
  bool Fails(Function function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (function != faults_.failing || faults_.well-- > 0) return false;
    faults_.failing = Function::kNone;
    return failed_ = true;
  }
  bool failed() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return failed_;
  }

 private:
  std::mutex mutex_;
  HostNcclFaults faults_;
  bool failed_ = false;
};

using Launch = std::function<Result()>;

struct HostComm {
  std::shared_ptr<Link> link;
  std::thread connecting;
  std::atomic<bool> in_call{false};
  std::vector<Launch> in_progress;  // handed over and not queued yet
  int questions = 0;                // until they are queued
};

HostComm* Of(Comm comm) { return reinterpret_cast<HostComm*>(comm); }

// NCCL takes one call at a time.
void BeginCall(HostComm& comm) {
  if (!comm.in_call.exchange(true)) return;
  std::fprintf(stderr, "host execution: two calls of NCCL at a time on one communicator\n");
  std::abort();
}

class InCall {
 public:
  explicit InCall(HostComm& comm) : comm_(comm) { BeginCall(comm_); }
  ~InCall() { comm_.in_call = false; }

 private:
  HostComm& comm_;
};

// Of the calling thread.
struct Group {
  int depth = 0;
  HostComm* comm = nullptr;
  std::vector<Launch> launches;
};
Group& OwnGroup() {
  thread_local Group group;
  return group;
}

Result HandOver(HostComm& comm, std::vector<Launch> launches) {
  const int questions = Faults::Get().faults().questions;
  if (questions > 0) {
    comm.in_progress = std::move(launches);
    comm.questions = questions;
    return kInProgress;
  }
  for (const Launch& launch : launches) {
    if (const Result result = launch(); result != kSuccess) return result;
  }
  return kSuccess;
}

Result GetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

Result GetUniqueId(UniqueId* id) {
  if (Faults::Get().Fails(Function::kGetUniqueId)) return kSystemError;
  const uint16_t port = OpenPort();
  std::memcpy(id->bytes, &port, sizeof port);
  return port == 0 ? kSystemError : kSuccess;
}

Result CommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return kInvalidArgument;
  if (Faults::Get().Fails(Function::kCommInitRankConfig)) return kSystemError;
  if (Faults::Get().faults().connect_hangs) NeverReturn();
  uint16_t port = 0;
  std::memcpy(&port, id.bytes, sizeof port);
  auto* const made = new HostComm;
  made->link = std::make_shared<Link>(ranks, rank, port);
  made->connecting = std::thread([link = made->link] { link->Connect(); });
  *comm = reinterpret_cast<Comm>(made);
  return kInProgress;
}

Result CommGetAsyncError(Comm comm, Result* error) {
  HostComm& host = *Of(comm);
  const InCall call(host);
  *error = kSuccess;
  if (Faults::Get().Fails(Function::kCommGetAsyncError)) return kInternalError;
  if (!host.in_progress.empty()) {
    if (--host.questions > 0) {
      *error = kInProgress;
      return kSuccess;
    }
    for (const Launch& launch : std::exchange(host.in_progress, {})) {
      if (*error == kSuccess) *error = launch();
    }
  }
  if (*error == kSuccess) *error = host.link->state();
  return kSuccess;
}

Result CommAbort(Comm comm) {
  HostComm* const host = Of(comm);
  BeginCall(*host);
  if (Faults::Get().faults().abort_hangs) NeverReturn();
  host->link->Abort();
  host->connecting.join();
  delete host;
  return kSuccess;
}

const char* GetErrorString(Result result) { return result == kRemoteError ? "a peer was lost" : "it failed"; }
const char* GetLastError(Comm) { return ""; }

Result GroupStart() {
  if (Faults::Get().Fails(Function::kGroupStart)) return kInternalError;
  ++OwnGroup().depth;
  return kSuccess;
}

Result GroupEnd() {
  Group& group = OwnGroup();
  if (group.depth == 0) return kInvalidUsage;
  if (--group.depth > 0) return kSuccess;
  HostComm* const comm = std::exchange(group.comm, nullptr);
  std::vector<Launch> launches = std::exchange(group.launches, {});
  if (Faults::Get().Fails(Function::kGroupEnd)) return kInternalError;
  if (comm == nullptr) return kSuccess;
  const InCall call(*comm);
  return HandOver(*comm, std::move(launches));
}

Result Queue(Function function, const Operation& operation, const void* send, void* receive, Comm comm,
             device::cuda::StreamHandle stream) {
  HostComm& host = *Of(comm);
  const InCall call(host);
  if (Faults::Get().Fails(function)) return kInternalError;
  if (!host.in_progress.empty() || host.link->state() == kInProgress) return kInvalidUsage;
  Launch launch = [=, link = host.link] {
    const absl::Status queued = device::cuda::Enqueue(stream, [=] {
      {
        // Ended before the call is: others work while this one waits for its peers.
        device::cuda::checker::Operation call("a call of NCCL");
        call.Reads(send, link->SentBytes(operation));
        call.Writes(receive, link->ReceivedBytes(operation));
      }
      link->Run(operation, static_cast<const std::byte*>(send), static_cast<std::byte*>(receive));
    });
    return queued.ok() ? kSuccess : kUnhandledCudaError;
  };
  if (Group& group = OwnGroup(); group.depth > 0) {
    group.comm = &host;
    group.launches.push_back(std::move(launch));
    return kSuccess;
  }
  return HandOver(host, {std::move(launch)});
}

Result AllReduce(const void* send, void* receive, size_t count, DataType type, ReduceOp, Comm comm,
                 device::cuda::StreamHandle stream) {
  return Queue(Function::kAllReduce, {Kind::kAllReduce, type, count, 0}, send, receive, comm, stream);
}
Result ReduceScatter(const void* send, void* receive, size_t count, DataType type, ReduceOp, Comm comm,
                     device::cuda::StreamHandle stream) {
  return Queue(Function::kReduceScatter, {Kind::kReduceScatter, type, count, 0}, send, receive, comm, stream);
}
Result AllGather(const void* send, void* receive, size_t count, DataType type, Comm comm,
                 device::cuda::StreamHandle stream) {
  return Queue(Function::kAllGather, {Kind::kAllGather, type, count, 0}, send, receive, comm, stream);
}
Result Broadcast(const void* send, void* receive, size_t count, DataType type, int root, Comm comm,
                 device::cuda::StreamHandle stream) {
  return Queue(Function::kBroadcast, {Kind::kBroadcast, type, count, root}, send, receive, comm, stream);
}

}  // namespace

void SetHostNccl(const HostNcclFaults& faults) { Faults::Get().Set(faults); }
bool HostNcclFailed() { return Faults::Get().failed(); }

absl::StatusOr<const Api*> LoadNccl() {
  static constexpr Api kApi = {
      .get_version = &GetVersion,
      .get_unique_id = &GetUniqueId,
      .comm_init_rank_config = &CommInitRankConfig,
      .comm_get_async_error = &CommGetAsyncError,
      .comm_abort = &CommAbort,
      .get_error_string = &GetErrorString,
      .get_last_error = &GetLastError,
      .group_start = &GroupStart,
      .group_end = &GroupEnd,
      .all_reduce = &AllReduce,
      .reduce_scatter = &ReduceScatter,
      .all_gather = &AllGather,
      .broadcast = &Broadcast,
  };
  return &kApi;
}

}  // namespace lockstep::worker::nccl
