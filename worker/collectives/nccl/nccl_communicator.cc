#include "worker/collectives/nccl/nccl_communicator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/nccl/call_turn.h"
#include "worker/collectives/nccl/queued_call.h"
#include "worker/collectives/nccl/return_limit.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/cuda/step_math.h"
#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

using device::StepMath;
using nccl::Api;
using nccl::Comm;

// Elements of a part that a rank reduces: a multiple of this.
constexpr int64_t kPartMultiple = 16;
// The first sums are of at most so many elements.
constexpr int64_t kMostWarmElements = int64_t{1} << 18;
// A broadcast goes in pieces of kDevicePieceBytes, which has to be the same on every rank.
static_assert(kDevicePieceBytes >= kMostWarmElements * sizeof(int64_t), "the first sums lie in the scratch memory");
// The tag under which the unique id travels: of no step.
constexpr Tag kIdTag{-1, 0x6e63636cu};
// Each bucket or piece that is under way is some 20 launches, NCCL's own marks and waits counted.
static_assert(kDeviceCallsUnderWay * 20 < 1000, "a stream takes about 1,000 launches before one of them blocks");

bool Failed(nccl::Result result) { return result != nccl::kSuccess && result != nccl::kInProgress; }

absl::Status Failure(const Api& api, Comm comm, nccl::Result result, absl::string_view doing) {
  const char* const last = api.get_last_error(comm);
  const absl::string_view detail = last == nullptr ? "" : last;
  return absl::UnavailableError(absl::StrCat("NCCL failed while ", doing, ": ", api.get_error_string(result),
                                             detail.empty() ? "" : ": ", detail));
}

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
    // Beyond its own deadline only a call that does not return keeps this from ending.
    const ReturnLimit limit(options_.connect_timeout + options_.abort_limit, "connecting (is NCCL_COMM_BLOCKING set?)");
    const absl::Time deadline = SteadyNow() + options_.connect_timeout;
    LS_ASSIGN_OR_RETURN(const nccl::UniqueId id, ShareUniqueId());
    LS_ASSIGN_OR_RETURN(stream_, device::cuda::NewCudaStream());
    for (std::unique_ptr<device::Event>& mark : under_way_) {
      LS_ASSIGN_OR_RETURN(mark, device::cuda::NewCudaEvent());
    }
    {
      const InTurn turn(turn_);
      nccl::Config config;
      const nccl::Result begun = api_.comm_init_rank_config(&comm_, host_.size(), id, host_.rank(), &config);
      if (Failed(begun)) return Failure(api_, comm_, begun, "connecting");
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
    return Queue(absl::StrCat("bucket of step ", tag.step, ", attempt ", tag.attempt), filled, [&] {
      return QueueOne([&] { return bucket.sums != nullptr ? QueueExact(bucket) : QueueNative(bucket); });
    });
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
    LS_ASSIGN_OR_RETURN(scratch_, device::cuda::NewDeviceBuffer(kDevicePieceBytes));
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
    if (warm.ok()) warm = QueuePieces(/*root=*/0, scratch_->address(), kDevicePieceBytes);
    if (warm.ok()) warm = WaitForStream(deadline);
    if (!warm.ok()) {
      // Nothing uses the buffers any more when they go.
      AbortNccl();
      warm = device::MarkedAs(stream_->Synchronize(), warm);
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
    const absl::Status& failed = handle.status();
    BreakBoth(AsAborted(failed, absl::StrCat(what, ": ", failed.message())));
    // Part of the call may be under way: the handle has ended once nothing touches its memory.
    AbortNccl();
    return EndedHandle(device::MarkedAs(stream_->Synchronize(), fate_->cause()));
  }

  // Queues a bucket or a piece, by `work`, once there is room. A launch for which the device has no room blocks, and it
  // would keep its turn, which an abort needs to make the device go on.
  template <typename F>
  absl::Status QueueOne(F work) {
    device::Event& mark = *under_way_[next_mark_++ % kDeviceCallsUnderWay];
    for (const PollBackoff patience; !mark.Ready(); patience.Pause()) {
      LS_RETURN_IF_ERROR(fate_->cause());
      LS_RETURN_IF_ERROR(host_.status());
    }
    LS_RETURN_IF_ERROR(work());
    return stream_->Record(mark);
  }

  absl::Status QueuePieces(int root, std::byte* memory, size_t bytes) {
    for (size_t offset = 0; offset < bytes; offset += kDevicePieceBytes) {
      std::byte* const piece = memory == nullptr ? scratch_->address() : memory + offset;
      LS_RETURN_IF_ERROR(QueueOne([&] {
        return Call("broadcasting", [&](Comm comm, auto stream) {
          return api_.broadcast(piece, piece, std::min(bytes - offset, kDevicePieceBytes), nccl::kUint8, root, comm,
                                stream);
        });
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
      nccl::Result first = api_.group_start();
      if (first != nccl::kSuccess) return first;
      if (part > 0) {
        first = api_.reduce_scatter(bucket.sums, bucket.sums + own, static_cast<size_t>(part), nccl::kInt64, nccl::kSum,
                                    comm, stream);
      }
      if (parts < bucket.size && !Failed(first)) {
        int64_t* const rest = bucket.sums + parts;
        first = api_.all_reduce(rest, rest, static_cast<size_t>(bucket.size - parts), nccl::kInt64, nccl::kSum, comm,
                                stream);
      }
      // What was begun is ended in any case.
      const nccl::Result ended = api_.group_end();
      return Failed(first) ? first : ended;
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
      const InTurn turn(turn_);
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
    const InTurn turn(turn_);
    return Ask(doing);
  }
  // The same, by the thread that has the turn.
  absl::StatusOr<bool> Ask(absl::string_view doing) {
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
      // Not behind a call that may never return: the host communicator is looked at in any case.
      if (fate_->cause().ok() && turn_.TryBegin()) {
        const absl::Status settled = Ask("serving the ranks").status();
        turn_.End();
        if (!settled.ok()) BreakBoth(settled);
      }
      if (!fate_->cause().ok()) {
        AbortNccl();
        return;
      }
      absl::SleepFor(options_.watch_interval);
    }
  }

  // Makes NCCL's kernels give up, and lets go of NCCL's memory. Later calls find no communicator. Returns at once where
  // another thread is at it. Ends the process where NCCL does not return, from a call that has the turn or from the
  // abort itself.
  void AbortNccl() {
    if (gone_) return;
    const ReturnLimit limit(options_.abort_limit, "aborting");
    Comm comm = nullptr;
    {
      const InTurn turn(turn_);
      std::swap(comm, comm_);
    }
    gone_ = true;
    if (comm != nullptr) (void)api_.comm_abort(comm);
  }

  const Api& api_;
  Communicator& host_;
  const NcclOptions options_;
  const std::unique_ptr<StepMath> math_;
  const std::shared_ptr<SharedFailure> fate_ = std::make_shared<SharedFailure>();
  std::unique_ptr<device::Buffer> scratch_;  // kDevicePieceBytes: takes in what this rank does not keep of a broadcast
  std::unique_ptr<device::Stream> stream_;
  // Marks behind the newest calls, used again and again, by the device's owner thread.
  std::array<std::unique_ptr<device::Event>, kDeviceCallsUnderWay> under_way_;
  size_t next_mark_ = 0;
  CallTurn turn_;
  Comm comm_ = nullptr;            // used by whoever has the turn
  std::atomic<bool> gone_{false};  // comm_ is null for good
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
