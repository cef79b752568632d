#include "worker/device/host/host_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace lockstep::device {
namespace {

constexpr size_t kPage = size_t{64} << 10;  // a multiple of any page
constexpr size_t kHugePage = size_t{2} << 20;
// Buffers of so many bytes lie in mappings of their own, in huge pages where the system has them.
constexpr size_t kMapFrom = size_t{4} << 20;
// AddressSanitizer watches over what it allocates alone.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kMaps = false;
#else
constexpr bool kMaps = true;
#endif

size_t RoundUp(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

class HostBuffer final : public Buffer {
 public:
  // `mapped`: bytes of its mapping; 0: it comes from the heap.
  HostBuffer(std::byte* address, size_t size, size_t mapped) : address_(address), size_(size), mapped_(mapped) {}
  ~HostBuffer() override {
    if (mapped_ == 0) {
      std::free(address_);
    } else {
      munmap(address_, mapped_);
    }
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* address() const override { return address_; }
  size_t size() const override { return size_; }
  bool host_visible() const override { return true; }

 private:
  std::byte* address_;
  size_t size_;
  size_t mapped_;
};

// Zeroed memory that begins at a huge page, every page touched; null when there is none. REQUIRES: a multiple of kPage.
std::byte* Map(size_t bytes) {
  const size_t reserved = bytes + kHugePage;
  if (reserved < bytes) return nullptr;
  void* const found = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* const from = static_cast<std::byte*>(found);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(from) % kHugePage) % kHugePage;
  if (before > 0) munmap(from, before);
  std::byte* const address = from + before;
  if (before < kHugePage) munmap(address + bytes, kHugePage - before);
  madvise(address, bytes, MADV_HUGEPAGE);  // a hint
  // Older kernels do not know how to touch pages at once.
  if (madvise(address, bytes, MADV_POPULATE_WRITE) != 0) std::memset(address, 0, bytes);
  return address;
}

// The same of the heap. REQUIRES: a multiple of Buffer::kAlignment.
std::byte* Allocate(size_t bytes) {
  auto* const address = static_cast<std::byte*>(std::aligned_alloc(Buffer::kAlignment, bytes));
  if (address != nullptr) std::memset(address, 0, bytes);
  return address;
}

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
  const bool maps = kMaps && bytes >= kMapFrom;
  const size_t rounded = RoundUp(bytes + 1, maps ? kPage : Buffer::kAlignment);
  std::byte* address = nullptr;
  if (rounded > bytes) address = maps ? Map(rounded) : Allocate(rounded);
  if (address == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("could not allocate ", bytes, " bytes of host memory; lower the batch size or give more memory"));
  }
  return std::make_unique<HostBuffer>(address, bytes, maps ? rounded : 0);
}

std::unique_ptr<Stream> NewImmediateStream() { return std::make_unique<ImmediateStream>(); }
std::unique_ptr<Event> NewImmediateEvent() { return std::make_unique<ImmediateEvent>(); }

}  // namespace lockstep::device
