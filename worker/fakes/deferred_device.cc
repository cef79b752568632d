#include "worker/fakes/deferred_device.h"

#include <xmmintrin.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/device/kernel.h"
#include "worker/device/wrapped_step_math.h"
#include "worker/fakes/hidden_memory.h"

namespace lockstep::device {
namespace {

// What all streams of one device share: whoever waits does the work, one at a time, with the owner's float mode.
class Machine {
 public:
  explicit Machine(std::shared_ptr<HiddenMemory> hidden) : hidden_(std::move(hidden)), mode_(_mm_getcsr()) {}

  // Held while a queue changes or its work is done, which may do that of other queues.
  std::recursive_mutex& mutex() { return mutex_; }

  // While one of these lives, memory is accessible.
  class Working {
   public:
    explicit Working(Machine& machine) : machine_(machine), mode_(_mm_getcsr()) {
      _mm_setcsr(machine.mode_);
      if (machine_.hidden_ != nullptr) machine_.hidden_->Open();
    }
    ~Working() {
      if (machine_.hidden_ != nullptr) machine_.hidden_->Close();
      _mm_setcsr(mode_);
    }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    Machine& machine_;
    const unsigned mode_;
  };

 private:
  const std::shared_ptr<HiddenMemory> hidden_;  // null: memory is that of the device inside
  const unsigned mode_;
  std::recursive_mutex mutex_;
};

// The work of one stream, shared with the events that were recorded in it, which may outlive the stream.
class WorkQueue {
 public:
  WorkQueue(std::shared_ptr<Machine> machine, std::unique_ptr<Stream> inner)
      : machine_(std::move(machine)), inner_(std::move(inner)) {}

  absl::Status Push(std::function<absl::Status(Stream&)> work) {
    const std::lock_guard lock(machine_->mutex());
    LS_RETURN_IF_ERROR(failure_);
    ++queued_;
    work_.push_back(std::move(work));
    return absl::OkStatus();
  }

  // Does everything up to and including piece number `position`. What follows a failure is dropped.
  absl::Status RunUntil(uint64_t position) {
    const std::lock_guard lock(machine_->mutex());
    if (done_ >= position) return failure_;
    const Machine::Working working(*machine_);
    while (done_ < position) {
      const std::function<absl::Status(Stream&)> work = std::move(work_.front());
      work_.pop_front();
      ++done_;
      if (failure_.ok()) failure_ = work(*inner_);
    }
    return failure_;
  }
  absl::Status RunAll() { return RunUntil(queued()); }

  uint64_t queued() const { return Locked(queued_); }
  uint64_t done() const { return Locked(done_); }
  absl::Status failure() const { return Locked(failure_); }

 private:
  template <typename T>
  T Locked(const T& member) const {
    const std::lock_guard lock(machine_->mutex());
    return member;
  }

  const std::shared_ptr<Machine> machine_;
  std::unique_ptr<Stream> inner_;
  std::deque<std::function<absl::Status(Stream&)>> work_;
  uint64_t queued_ = 0;
  uint64_t done_ = 0;
  absl::Status failure_;
};

class DeferredEvent final : public Event {
 public:
  bool Ready() const override { return queue_ == nullptr || queue_->done() >= position_; }
  absl::Status Wait() override { return queue_ == nullptr ? absl::OkStatus() : queue_->RunUntil(position_); }

  void Mark(std::shared_ptr<WorkQueue> queue) {
    queue_ = std::move(queue);
    position_ = queue_->queued();
  }
  const std::shared_ptr<WorkQueue>& queue() const { return queue_; }
  uint64_t position() const { return position_; }

 private:
  std::shared_ptr<WorkQueue> queue_;
  uint64_t position_ = 0;
};

using QueuedWork = std::function<absl::Status(Stream&)>;

struct DeferredRecording final : Recording {
  std::vector<QueuedWork> work;
};

class DeferredStream final : public Stream {
 public:
  DeferredStream(std::shared_ptr<Machine> machine, std::unique_ptr<Stream> inner, std::shared_ptr<int> refused)
      : queue_(std::make_shared<WorkQueue>(std::move(machine), std::move(inner))),
        refused_recordings_(std::move(refused)) {}

  absl::Status Record(Event& event) override {
    LS_RETURN_IF_ERROR(queue_->failure());
    static_cast<DeferredEvent&>(event).Mark(queue_);
    return absl::OkStatus();
  }
  absl::Status WaitFor(Event& event) override {
    // The mark that counts is the newest one now, not when the work is done.
    const auto& deferred = static_cast<DeferredEvent&>(event);
    if (deferred.queue() == nullptr) return absl::OkStatus();
    return queue_->Push(
        [queue = deferred.queue(), position = deferred.position()](Stream&) { return queue->RunUntil(position); });
  }
  absl::Status CopyToDevice(std::byte* device, const std::byte* host, size_t bytes) override {
    return queue_->Push([=](Stream& inner) { return inner.CopyToDevice(device, host, bytes); });
  }
  absl::Status CopyToHost(std::byte* host, const std::byte* device, size_t bytes) override {
    return queue_->Push([=](Stream& inner) { return inner.CopyToHost(host, device, bytes); });
  }
  absl::Status CopyOnDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    return Queue([=](Stream& inner) { return inner.CopyOnDevice(to, from, bytes); });
  }
  absl::Status Zero(std::byte* device, size_t bytes) override {
    return Queue([=](Stream& inner) { return inner.Zero(device, bytes); });
  }
  absl::Status Synchronize() override { return queue_->RunAll(); }

  bool can_record() const override { return true; }
  absl::Status BeginRecording() override {
    recording_ = std::make_unique<DeferredRecording>();
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    std::unique_ptr<DeferredRecording> recording = std::move(recording_);
    if (*refused_recordings_ == 0) return recording;
    --*refused_recordings_;
    return absl::InternalError("what was queued cannot be recorded");
  }
  absl::Status Replay(Recording& recording) override {
    for (const QueuedWork& work : static_cast<DeferredRecording&>(recording).work) {
      LS_RETURN_IF_ERROR(queue_->Push(work));
    }
    return absl::OkStatus();
  }

  absl::Status Queue(QueuedWork work) {
    if (recording_ == nullptr) return queue_->Push(std::move(work));
    recording_->work.push_back(std::move(work));
    return absl::OkStatus();
  }

 private:
  std::shared_ptr<WorkQueue> queue_;
  const std::shared_ptr<int> refused_recordings_;  // those still to come, of all streams
  std::unique_ptr<DeferredRecording> recording_;
};

class DeferredKernel final : public Kernel {
 public:
  explicit DeferredKernel(std::unique_ptr<Kernel> inner) : inner_(std::move(inner)) {}

  const std::string& implementation() const override { return inner_->implementation(); }
  size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  Layout input_layout(int input) const override { return inner_->input_layout(input); }
  Layout output_layout(int output) const override { return inner_->output_layout(output); }
  bool CanShare(int input, int output) const override { return inner_->CanShare(input, output); }
  absl::Status Bind(const KernelArguments& arguments) override { return inner_->Bind(arguments); }
  absl::Status Launch(Stream& stream) override {
    return static_cast<DeferredStream&>(stream).Queue(
        [kernel = inner_.get()](Stream& inner) { return kernel->Launch(inner); });
  }

 private:
  std::unique_ptr<Kernel> inner_;
};

class DeferredDevice final : public Device {
 public:
  DeferredDevice(std::unique_ptr<Device> inner, DeferredMemory memory, int refused_recordings)
      : inner_(std::move(inner)),
        hidden_(memory == DeferredMemory::kHidden ? std::make_shared<HiddenMemory>() : nullptr),
        machine_(std::make_shared<Machine>(hidden_)),
        refused_recordings_(std::make_shared<int>(refused_recordings)) {}

  const DeviceInfo& info() const override { return inner_->info(); }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    return hidden_ != nullptr ? hidden_->Allocate(bytes) : inner_->Allocate(bytes);
  }
  absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return inner_->AllocateHost(bytes); }
  bool host_visible() const override { return hidden_ == nullptr && inner_->host_visible(); }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Stream> stream, inner_->NewStream());
    return std::make_unique<DeferredStream>(machine_, std::move(stream), refused_recordings_);
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override { return std::make_unique<DeferredEvent>(); }
  absl::Status Supports(const KernelRequest& request) const override { return inner_->Supports(request); }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(const KernelRequest& request) override {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner_->MakeKernel(request));
    return std::make_unique<DeferredKernel>(std::move(kernel));
  }
  absl::StatusOr<std::unique_ptr<Kernel>> MakeReorder(const ReorderRequest& request) override {
    LS_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner_->MakeReorder(request));
    return std::make_unique<DeferredKernel>(std::move(kernel));
  }
  StepMath& step_math() override { return step_math_; }

 private:
  std::unique_ptr<Device> inner_;
  const std::shared_ptr<HiddenMemory> hidden_;
  const std::shared_ptr<Machine> machine_;
  const std::shared_ptr<int> refused_recordings_;
  WrappedStepMath step_math_{&inner_->step_math(), [](Stream& stream, WrappedStepMath::Work work) {
                               return static_cast<DeferredStream&>(stream).Queue(std::move(work));
                             }};
};

}  // namespace

std::unique_ptr<Device> MakeDeferredDevice(std::unique_ptr<Device> inner, DeferredMemory memory,
                                           int refused_recordings) {
  return std::make_unique<DeferredDevice>(std::move(inner), memory, refused_recordings);
}

}  // namespace lockstep::device
