#include "worker/collectives/nccl/nccl_communicator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "worker/collectives/completion.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/cuda/step_math.h"

namespace lockstep::worker {
namespace {

using device::StepMath;
using nccl::Api;
using nccl::Comm;

// Elements of a part that a rank reduces: a multiple of this.
constexpr int64_t kPartMultiple = 16;
// The first sums are of at most so many elements.
constexpr int64_t kMostWarmElements = int64_t{1} << 18;
// A broadcast goes in pieces of this size, which has to be the same on every rank.
constexpr size_t kPieceBytes = kMostWarmElements * sizeof(int64_t);
// The tag under which the unique id travels: of no step.
constexpr Tag kIdTag{-1, 0x6e63636cu};
// A waiting thread looks at once for so long, then less and less often.
constexpr absl::Duration kSpin = absl::Microseconds(200);
constexpr absl::Duration kNap = absl::Microseconds(50);

absl::Status Failure(const Api& api, Comm comm, nccl::Result result, absl::string_view doing) {
  const char* const last = api.get_last_error(comm);
  const absl::string_view detail = last == nullptr ? "" : last;
  return absl::UnavailableError(absl::StrCat("NCCL failed while ", doing, ": ", api.get_error_string(result),
                                             detail.empty() ? "" : ": ", detail));
}

// What breaks a communicator, shared with its handles, which may outlive it.
class Fate {
 public:
  void Break(const absl::Status& cause) {
    MutexLock lock(&mutex_);
    if (!cause_.ok()) return;
    cause_ = AsAborted(cause);
    broken_.store(true, std::memory_order_release);
  }
  absl::Status cause() const {
    if (!broken_.load(std::memory_order_acquire)) return absl::OkStatus();
    MutexLock lock(&mutex_);
    return cause_;
  }

 private:
  mutable Mutex mutex_;
  std::atomic<bool> broken_{false};
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
};

class QueuedCall final : public Pending {
 public:
  QueuedCall(std::unique_ptr<device::Event> behind, std::shared_ptr<const Fate> fate)
      : behind_(std::move(behind)), fate_(std::move(fate)) {}

  bool Done() const override { return behind_->Ready(); }

  absl::Status Wait(absl::Duration limit) override {
    const absl::Time begin = SteadyNow();
    while (!behind_->Ready()) {
      const absl::Duration waited = SteadyNow() - begin;
      if (waited >= limit) return absl::DeadlineExceededError("the device is still at it");
      if (waited > kSpin) absl::SleepFor(kNap);
    }
    // An abort is known before the device gives up: a mark that it let through is never taken for a result.
    LS_RETURN_IF_ERROR(fate_->cause());
    const absl::Status status = behind_->Wait();
    return status.ok() ? status : AsAborted(status);
  }

 private:
  const std::unique_ptr<device::Event> behind_;
  const std::shared_ptr<const Fate> fate_;
};

class NcclCommunicator final : public DeviceCommunicator {
 public:
  NcclCommunicator(const Api& api, Communicator& host, const NcclOptions& options)
      : api_(api), host_(host), options_(options), math_(device::cuda::NewCudaStepMath()) {}

  ~NcclCommunicator() override {
    Abort(absl::AbortedError("the communicator was closed"));
    ending_ = true;
    if (watcher_.joinable()) watcher_.join();
    // Without an abort by the watcher nothing else would let go of NCCL's memory.
    AbortNccl();
    if (stream_ != nullptr) (void)stream_->Synchronize();
  }

  absl::Status Connect() {
    const absl::Time deadline = SteadyNow() + options_.connect_timeout;
    LS_ASSIGN_OR_RETURN(const nccl::UniqueId id, ShareUniqueId());
    LS_ASSIGN_OR_RETURN(stream_, device::cuda::NewCudaStream());
    {
      MutexLock lock(&mutex_);
      nccl::Config config;
      const nccl::Result begun = api_.comm_init_rank_config(&comm_, host_.size(), id, host_.rank(), &config);
      if (begun != nccl::kSuccess && begun != nccl::kInProgress) return Failure(api_, comm_, begun, "connecting");
    }
    for (;;) {
      LS_ASSIGN_OR_RETURN(const bool ready, Settled("connecting"));
      if (ready) break;
      LS_RETURN_IF_ERROR(host_.status());
      if (SteadyNow() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat("NCCL did not connect ", host_.size(), " ranks within ",
                                                        absl::FormatDuration(options_.connect_timeout)));
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    LS_RETURN_IF_ERROR(WarmUp(deadline));
    watcher_ = std::thread([this] { Watch(); });
    return absl::OkStatus();
  }

  Handle Reduce(Tag tag, const DeviceBucket& bucket, device::Event& filled) override {
    return Queue(absl::StrCat("bucket of step ", tag.step, ", attempt ", tag.attempt), filled,
                 [&] { return bucket.sums != nullptr ? QueueExact(bucket) : QueueNative(bucket); });
  }

  Handle Broadcast(Tag tag, int root, std::byte* memory, size_t bytes, device::Event& filled) override {
    return Queue(absl::StrCat("state of step ", tag.step), filled, [&] { return QueuePieces(root, memory, bytes); });
  }

  void Abort(const absl::Status& cause) override { fate_->Break(cause); }

 private:
  // That of rank 0, which tells the others also that it has none.
  absl::StatusOr<nccl::UniqueId> ShareUniqueId() {
    const nccl::UniqueId none = {};
    nccl::UniqueId id = none;
    absl::Status made;
    if (host_.rank() == 0) {
      const nccl::Result result = api_.get_unique_id(&id);
      if (result != nccl::kSuccess) {
        made = Failure(api_, nullptr, result, "making a unique id");
        id = none;
      }
    }
    const Handle sent = host_.Broadcast(kIdTag, 0, absl::MakeSpan(id.bytes));
    LS_RETURN_IF_ERROR(WaitOrAbort(host_, *sent, options_.connect_timeout));
    LS_RETURN_IF_ERROR(made);
    if (std::memcmp(&id, &none, sizeof id) == 0) return absl::UnavailableError("rank 0 could not make a unique id");
    return id;
  }

  // The first collective of a kind and size connects further ranks, allocates, and may fail: here nobody is told yet
  // that NCCL serves, and no step waits.
  absl::Status WarmUp(absl::Time deadline) {
    LS_ASSIGN_OR_RETURN(scratch_, device::cuda::NewDeviceBuffer(kPieceBytes));
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<device::Buffer> floats,
                        device::cuda::NewDeviceBuffer(kMostWarmElements * sizeof(float)));
    absl::Status warm;
    // Not divided by the ranks, so that every kind of call is among them.
    for (const int64_t size : {kPartMultiple * host_.size() + 1, kMostWarmElements - 1}) {
      const DeviceBucket bucket{.tensors = nullptr,
                                .size = size,
                                .sums = reinterpret_cast<int64_t*>(scratch_->address()),
                                .exponents = nullptr,
                                .floats = reinterpret_cast<float*>(floats->address())};
      if (warm.ok()) warm = QueueNative(bucket);
      if (warm.ok()) warm = QueueExact(bucket);
      if (warm.ok()) warm = QueuePieces(/*root=*/0, scratch_->address(), static_cast<size_t>(size) * sizeof(int64_t));
    }
    if (warm.ok()) warm = WaitForStream(deadline);
    if (!warm.ok()) {
      // Nothing uses the buffers any more when they go.
      AbortNccl();
      (void)stream_->Synchronize();
    }
    return warm;
  }

  absl::Status WaitForStream(absl::Time deadline) {
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<device::Event> behind, device::cuda::NewCudaEvent());
    LS_RETURN_IF_ERROR(stream_->Record(*behind));
    while (!behind->Ready()) {
      LS_RETURN_IF_ERROR(Settled("summing for the first time").status());
      LS_RETURN_IF_ERROR(host_.status());
      if (SteadyNow() > deadline) {
        return absl::DeadlineExceededError(absl::StrCat("NCCL's first sums of ", host_.size(),
                                                        " ranks did not end within ",
                                                        absl::FormatDuration(options_.connect_timeout)));
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
    return behind->Wait();
  }

  // Queues a call: what `work` queues, between `filled` and a mark of its own. `what` names it when it fails.
  template <typename F>
  Handle Queue(absl::string_view what, device::Event& filled, F work) {
    const auto queue = [&]() -> absl::StatusOr<Handle> {
      LS_RETURN_IF_ERROR(fate_->cause());
      LS_RETURN_IF_ERROR(stream_->WaitFor(filled));
      LS_RETURN_IF_ERROR(work());
      LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Event> behind, device::cuda::NewCudaEvent());
      LS_RETURN_IF_ERROR(stream_->Record(*behind));
      return std::make_shared<QueuedCall>(std::move(behind), fate_);
    };
    absl::StatusOr<Handle> handle = queue();
    if (handle.ok()) return *std::move(handle);
    BreakBoth(absl::Status(handle.status().code(), absl::StrCat(what, ": ", handle.status().message())));
    // Part of the call may be under way: the handle has ended once nothing touches its memory.
    AbortNccl();
    (void)stream_->Synchronize();
    return EndedHandle(fate_->cause());
  }

  absl::Status QueuePieces(int root, std::byte* memory, size_t bytes) {
    for (size_t offset = 0; offset < bytes; offset += kPieceBytes) {
      std::byte* const piece = memory == nullptr ? scratch_->address() : memory + offset;
      LS_RETURN_IF_ERROR(Call("broadcasting", [&](Comm comm, auto stream) {
        return api_.broadcast(piece, piece, std::min(bytes - offset, kPieceBytes), nccl::kUint8, root, comm, stream);
      }));
    }
    return absl::OkStatus();
  }

  absl::Status QueueNative(const DeviceBucket& bucket) {
    return Call("summing floats", [&](Comm comm, auto stream) {
      return api_.all_reduce(bucket.floats, bucket.floats, static_cast<size_t>(bucket.size), nccl::kFloat32, nccl::kSum,
                             comm, stream);
    });
  }

  absl::Status QueueExact(const DeviceBucket& bucket) {
    const int64_t part = bucket.size / (kPartMultiple * host_.size()) * kPartMultiple;
    const int64_t parts = part * host_.size();
    const int64_t own = part * host_.rank();
    LS_RETURN_IF_ERROR(Call("summing integers", [&](Comm comm, auto stream) {
      (void)api_.group_start();
      if (part > 0) {
        (void)api_.reduce_scatter(bucket.sums, bucket.sums + own, static_cast<size_t>(part), nccl::kInt64, nccl::kSum,
                                  comm, stream);
      }
      if (parts < bucket.size) {
        int64_t* const rest = bucket.sums + parts;
        (void)api_.all_reduce(rest, rest, static_cast<size_t>(bucket.size - parts), nccl::kInt64, nccl::kSum, comm,
                              stream);
      }
      return api_.group_end();
    }));
    LS_RETURN_IF_ERROR(Dequantize(bucket, own, own + part));
    LS_RETURN_IF_ERROR(Dequantize(bucket, parts, bucket.size));
    if (part == 0) return absl::OkStatus();
    return Call("gathering floats", [&](Comm comm, auto stream) {
      return api_.all_gather(bucket.floats + own, bucket.floats, static_cast<size_t>(part), nccl::kFloat32, comm,
                             stream);
    });
  }

  absl::Status Dequantize(const DeviceBucket& bucket, int64_t begin, int64_t end) {
    if (begin == end || bucket.tensors == nullptr) return absl::OkStatus();
    return math_->Dequantize(*stream_, *bucket.tensors, begin, end, bucket.sums, bucket.exponents, bucket.floats);
  }

  // Makes a call of NCCL's and sees it queued: a communicator that does not block may take a moment for it.
  template <typename F>
  absl::Status Call(absl::string_view doing, F call) {
    {
      MutexLock lock(&mutex_);
      if (comm_ == nullptr) return Gone();
      const nccl::Result result = call(comm_, device::cuda::HandleOf(*stream_));
      if (result == nccl::kSuccess) return absl::OkStatus();
      if (result != nccl::kInProgress) return Failure(api_, comm_, result, doing);
    }
    for (;;) {
      LS_ASSIGN_OR_RETURN(const bool settled, Settled(doing));
      if (settled) return absl::OkStatus();
      LS_RETURN_IF_ERROR(fate_->cause());
      LS_RETURN_IF_ERROR(host_.status());  // nobody watches yet while it connects
      absl::SleepFor(absl::Microseconds(10));
    }
  }

  // True when nothing is in progress; the asynchronous error if there is one.
  absl::StatusOr<bool> Settled(absl::string_view doing) {
    MutexLock lock(&mutex_);
    if (comm_ == nullptr) return Gone();
    nccl::Result state = nccl::kSuccess;
    nccl::Result asked = api_.comm_get_async_error(comm_, &state);
    if (asked == nccl::kSuccess) asked = state;
    if (asked == nccl::kInProgress) return false;
    if (asked != nccl::kSuccess) return Failure(api_, comm_, asked, doing);
    return true;
  }

  absl::Status Gone() const {
    const absl::Status cause = fate_->cause();
    return cause.ok() ? absl::AbortedError("NCCL was not connected") : cause;
  }

  // The first failure, for every rank.
  void BreakBoth(const absl::Status& cause) {
    fate_->Break(cause);
    host_.Abort(fate_->cause());
  }

  void Watch() {
    (void)device::cuda::SelectDevice(options_.ordinal);
    while (!ending_) {
      if (const absl::Status host = host_.status(); !host.ok()) fate_->Break(host);
      if (fate_->cause().ok()) {
        if (const absl::StatusOr<bool> settled = Settled("serving the ranks"); !settled.ok())
          BreakBoth(settled.status());
      }
      if (!fate_->cause().ok()) {
        AbortNccl();
        return;
      }
      absl::SleepFor(options_.watch_interval);
    }
  }

  // Waits until NCCL's kernels have given up. Later calls find no communicator.
  void AbortNccl() {
    MutexLock lock(&mutex_);
    if (comm_ == nullptr) return;
    (void)api_.comm_abort(comm_);
    comm_ = nullptr;
  }

  const Api& api_;
  Communicator& host_;
  const NcclOptions options_;
  const std::unique_ptr<StepMath> math_;
  const std::shared_ptr<Fate> fate_ = std::make_shared<Fate>();
  std::unique_ptr<device::Buffer> scratch_;  // kPieceBytes: takes in what this rank does not keep of a broadcast
  std::unique_ptr<device::Stream> stream_;
  Mutex mutex_;
  Comm comm_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> ending_{false};
  std::thread watcher_;
};

}  // namespace

absl::Status WaitOrAbort(Communicator& host, Pending& handle, absl::Duration limit) {
  absl::Status status = handle.Wait(limit);
  if (!absl::IsDeadlineExceeded(status)) return status;
  host.Abort(absl::AbortedError(absl::StrCat("connecting GPUs took longer than ", absl::FormatDuration(limit))));
  return handle.Wait(absl::InfiniteDuration());
}

absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectNccl(const nccl::Api& api, Communicator& host,
                                                                const NcclOptions& options) {
  auto communicator = std::make_unique<NcclCommunicator>(api, host, options);
  LS_RETURN_IF_ERROR(communicator->Connect());
  return communicator;
}

}  // namespace lockstep::worker
