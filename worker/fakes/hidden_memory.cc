#include "worker/fakes/hidden_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"

namespace lockstep::device {

class HiddenMemory::HiddenBuffer final : public Buffer {
 public:
  HiddenBuffer(std::shared_ptr<HiddenMemory> memory, std::byte* address, size_t size)
      : memory_(std::move(memory)), address_(address), size_(size) {}
  ~HiddenBuffer() override { memory_->Free(address_); }
  HiddenBuffer(const HiddenBuffer&) = delete;
  HiddenBuffer& operator=(const HiddenBuffer&) = delete;

  std::byte* address() const override { return address_; }
  size_t size() const override { return size_; }
  bool host_visible() const override { return false; }

 private:
  const std::shared_ptr<HiddenMemory> memory_;
  std::byte* const address_;
  const size_t size_;
};

absl::StatusOr<std::unique_ptr<Buffer>> HiddenMemory::Allocate(size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole = bytes + page - bytes % page;
  void* const address = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat("could not map ", bytes, " bytes of hidden memory"));
  }
  MutexLock lock(&mutex_);
  buffers_[static_cast<std::byte*>(address)] = whole;
  Protect(static_cast<std::byte*>(address), whole, open_ > 0);
  return std::make_unique<HiddenBuffer>(shared_from_this(), static_cast<std::byte*>(address), bytes);
}

void HiddenMemory::Open() {
  MutexLock lock(&mutex_);
  if (open_++ > 0) return;
  for (const auto& [address, bytes] : buffers_) Protect(address, bytes, true);
}

void HiddenMemory::Close() {
  MutexLock lock(&mutex_);
  if (--open_ > 0) return;
  for (const auto& [address, bytes] : buffers_) Protect(address, bytes, false);
}

void HiddenMemory::Free(std::byte* address) {
  MutexLock lock(&mutex_);
  const auto found = buffers_.find(address);
  munmap(address, found->second);
  buffers_.erase(found);
}

void HiddenMemory::Protect(std::byte* address, size_t bytes, bool accessible) {
  LS_CHECK(mprotect(address, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0, "pages change their access");
}

}  // namespace lockstep::device
