#include "worker/device/cuda/runtime/cuda_stream.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/gpu_memory.h"

namespace lockstep::device::cuda {
namespace {

std::atomic<int64_t> in_buffers{0};

class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::byte* address, size_t size, std::shared_ptr<MemoryBudget> budget)
      : address_(address), size_(size), budget_(std::move(budget)) {
    in_buffers += static_cast<int64_t>(size_);
  }
  ~DeviceBuffer() override {
    FreeDevice(address_);
    in_buffers -= static_cast<int64_t>(size_);
    if (budget_ != nullptr) budget_->Return(static_cast<int64_t>(size_));
  }

  std::byte* address() const override { return address_; }
  size_t size() const override { return size_; }
  bool host_visible() const override { return false; }

 private:
  std::byte* const address_;
  const size_t size_;
  const std::shared_ptr<MemoryBudget> budget_;
};

class PinnedBuffer final : public Buffer {
 public:
  PinnedBuffer(std::byte* address, size_t size) : address_(address), size_(size) {}
  ~PinnedBuffer() override { FreePinned(address_); }

  std::byte* address() const override { return address_; }
  size_t size() const override { return size_; }
  bool host_visible() const override { return true; }

 private:
  std::byte* const address_;
  const size_t size_;
};

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(EventHandle handle) : handle_(handle) {}
  ~CudaEvent() override { DestroyEvent(handle_); }

  bool Ready() const override { return EventDone(handle_); }
  absl::Status Wait() override { return WaitForEvent(handle_); }
  EventHandle handle() const { return handle_; }

 private:
  const EventHandle handle_;
};

class CudaRecording final : public Recording {
 public:
  explicit CudaRecording(GraphHandle handle) : handle_(handle) {}
  ~CudaRecording() override { DestroyGraph(handle_); }
  GraphHandle handle() const { return handle_; }

 private:
  const GraphHandle handle_;
};

class CudaStream final : public Stream {
 public:
  explicit CudaStream(StreamHandle handle) : handle_(handle) {}
  ~CudaStream() override { DestroyStream(handle_); }

  absl::Status Record(Event& event) override { return RecordEvent(HandleOf(event), handle_); }
  absl::Status WaitFor(Event& event) override { return StreamWaits(handle_, HandleOf(event)); }
  absl::Status CopyToDevice(std::byte* device, const std::byte* host, size_t bytes) override {
    return cuda::CopyToDevice(handle_, device, host, bytes);
  }
  absl::Status CopyToHost(std::byte* host, const std::byte* device, size_t bytes) override {
    return cuda::CopyToHost(handle_, host, device, bytes);
  }
  absl::Status CopyOnDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    return cuda::CopyOnDevice(handle_, to, from, bytes);
  }
  absl::Status Zero(std::byte* device, size_t bytes) override { return cuda::Zero(handle_, device, bytes); }
  absl::Status Synchronize() override { return cuda::Synchronize(handle_); }
  bool can_record() const override { return true; }
  absl::Status BeginRecording() override { return BeginCapture(handle_); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    LS_ASSIGN_OR_RETURN(const GraphHandle graph, EndCapture(handle_));
    return std::make_unique<CudaRecording>(graph);
  }
  absl::Status Replay(Recording& recording) override {
    return cuda::Replay(static_cast<CudaRecording&>(recording).handle(), handle_);
  }
  StreamHandle handle() const { return handle_; }

 private:
  const StreamHandle handle_;
};

}  // namespace

int64_t BytesInBuffers() { return in_buffers; }

absl::Status MemoryBudget::Take(int64_t bytes) {
  const int64_t used = used_.fetch_add(bytes);
  if (limit_ == 0 || used <= limit_ - bytes) return absl::OkStatus();
  used_ -= bytes;
  return absl::ResourceExhaustedError(absl::StrCat("`resources.gpu_memory` leaves ", limit_ - used, " of ", limit_,
                                                   " bytes, and ", bytes, " are needed"));
}

absl::StatusOr<std::unique_ptr<Buffer>> NewDeviceBuffer(size_t bytes, std::shared_ptr<MemoryBudget> budget) {
  if (budget != nullptr) LS_RETURN_IF_ERROR(budget->Take(static_cast<int64_t>(bytes)));
  const absl::StatusOr<std::byte*> allocated = AllocateDevice(bytes);
  if (!allocated.ok()) {
    if (budget != nullptr) budget->Return(static_cast<int64_t>(bytes));
    return allocated.status();
  }
  std::byte* const address = *allocated;
  auto buffer = std::make_unique<DeviceBuffer>(address, bytes, std::move(budget));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, NewCudaStream());
  LS_RETURN_IF_ERROR(stream->Zero(address, bytes));
  LS_RETURN_IF_ERROR(stream->Synchronize());
  return buffer;
}

absl::StatusOr<std::unique_ptr<Buffer>> NewPinnedBuffer(size_t bytes) {
  LS_ASSIGN_OR_RETURN(std::byte* const address, AllocatePinned(bytes));
  if (bytes > 0) std::memset(address, 0, bytes);
  return std::make_unique<PinnedBuffer>(address, bytes);
}

absl::StatusOr<std::unique_ptr<Stream>> NewCudaStream() {
  LS_ASSIGN_OR_RETURN(const StreamHandle handle, CreateStream());
  return std::make_unique<CudaStream>(handle);
}

absl::StatusOr<std::unique_ptr<Event>> NewCudaEvent() {
  LS_ASSIGN_OR_RETURN(const EventHandle handle, CreateEvent());
  return std::make_unique<CudaEvent>(handle);
}

StreamHandle HandleOf(Stream& stream) { return static_cast<CudaStream&>(stream).handle(); }
EventHandle HandleOf(Event& event) { return static_cast<CudaEvent&>(event).handle(); }

}  // namespace lockstep::device::cuda
