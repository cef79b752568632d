#include "worker/device/host_memory.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep::device {
namespace {

class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::byte* address, size_t size) : address_(address), size_(size) {}
  ~HostBuffer() override { std::free(address_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* address() const override { return address_; }
  size_t size() const override { return size_; }
  bool host_visible() const override { return true; }

 private:
  std::byte* address_;
  size_t size_;
};

class ImmediateEvent final : public Event {
 public:
  bool Ready() const override { return true; }
  absl::Status Wait() override { return absl::OkStatus(); }
};

// memmove and memset may not be called with null, which an empty copy may carry.
void CopyBytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

// Kernels of these devices return their failure from Launch to the caller at once, so none is left to keep here.
class ImmediateStream final : public Stream {
 public:
  absl::Status Record(Event&) override { return absl::OkStatus(); }
  absl::Status WaitFor(Event& event) override { return event.Wait(); }
  absl::Status CopyToDevice(std::byte* device, const std::byte* host, size_t bytes) override {
    CopyBytes(device, host, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyToHost(std::byte* host, const std::byte* device, size_t bytes) override {
    CopyBytes(host, device, bytes);
    return absl::OkStatus();
  }
  absl::Status CopyOnDevice(std::byte* to, const std::byte* from, size_t bytes) override {
    CopyBytes(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Zero(std::byte* device, size_t bytes) override {
    if (bytes > 0) std::memset(device, 0, bytes);
    return absl::OkStatus();
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  bool can_record() const override { return false; }
  absl::Status BeginRecording() override { return NotRecorded(); }
  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override { return NotRecorded(); }
  absl::Status Replay(Recording&) override { return NotRecorded(); }

 private:
  static absl::Status NotRecorded() { return absl::UnimplementedError("work on the host is done at once"); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Buffer>> AllocateHostBuffer(size_t bytes) {
  const size_t rounded = (bytes + Buffer::kAlignment) / Buffer::kAlignment * Buffer::kAlignment;
  auto* address = rounded > bytes ? static_cast<std::byte*>(std::aligned_alloc(Buffer::kAlignment, rounded)) : nullptr;
  if (address == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("could not allocate ", bytes, " bytes of host memory; lower the batch size or give more memory"));
  }
  std::memset(address, 0, rounded);
  return std::make_unique<HostBuffer>(address, bytes);
}

std::unique_ptr<Stream> NewImmediateStream() { return std::make_unique<ImmediateStream>(); }
std::unique_ptr<Event> NewImmediateEvent() { return std::make_unique<ImmediateEvent>(); }

}  // namespace lockstep::device
