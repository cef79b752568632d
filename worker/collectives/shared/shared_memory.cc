#include "worker/collectives/shared/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;
#if !defined(F_SEAL_FUTURE_WRITE)
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

// Touches every page, so that later uses do not pay for page faults. False: memory is exhausted.
bool Populate(std::byte* begin, size_t bytes) {
  madvise(begin, bytes, MADV_HUGEPAGE);  // a hint
  if (madvise(begin, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
  std::memset(begin, 0, bytes);  // kernels before 5.14 do not know the request
  return true;
}

}  // namespace

SharedMapping::SharedMapping(int fd, size_t bytes, bool writable) {
  void* const found = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
  if (found == MAP_FAILED) return;
  begin_ = static_cast<std::byte*>(found);
  size_ = bytes;
}

SharedMapping::~SharedMapping() {
  if (begin_ != nullptr) munmap(begin_, size_);
}

SharedMapping::SharedMapping(SharedMapping&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}

SharedMapping& SharedMapping::operator=(SharedMapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

absl::StatusOr<SharedSegment> SharedSegment::Make(size_t bytes) {
  rlimit largest = {};
  // Beyond it the system would end the process by SIGXFSZ.
  if (getrlimit(RLIMIT_FSIZE, &largest) == 0 && bytes > largest.rlim_cur) {
    return absl::UnavailableError("the limit of file sizes (ulimit -f) is below what would be shared");
  }
  SharedSegment segment;
  segment.fd = Descriptor(memfd_create("lockstep", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.fd.is_open()) return absl::ErrnoToStatus(errno, "the system has no memory that processes can share");
  if (ftruncate(segment.fd.get(), static_cast<off_t>(bytes)) == 0) {
    segment.mapping = SharedMapping(segment.fd.get(), bytes, /*writable=*/true);
  }
  if (segment.mapping.begin() == nullptr || !Populate(segment.mapping.begin(), bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("could not allocate ", bytes, " bytes of host memory; lower the batch size or give more memory"));
  }
  if (fcntl(segment.fd.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno != EINVAL) {
    return absl::ErrnoToStatus(errno, "shared memory cannot be sealed");
  }
  if (fcntl(segment.fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "shared memory cannot be sealed");
  }
  return segment;
}

absl::Status SharedSegment::Check(int fd, size_t bytes) {
  const int seals = fcntl(fd, F_GET_SEALS);
  struct stat found = {};
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals || fstat(fd, &found) != 0 ||
      found.st_size != static_cast<off_t>(bytes)) {
    return absl::UnavailableError("what it shares is no sealed memory of the size that it says");
  }
  return absl::OkStatus();
}

class SharedMemory::SegmentBuffer final : public device::Buffer {
 public:
  SegmentBuffer(std::shared_ptr<SharedMemory> memory, uint64_t number, SharedSegment segment, size_t size)
      : memory_(std::move(memory)), number_(number), segment_(std::move(segment)), size_(size) {}
  ~SegmentBuffer() override { memory_->Forget(number_); }

  std::byte* address() const override { return segment_.mapping.begin(); }
  size_t size() const override { return size_; }
  bool host_visible() const override { return true; }

 private:
  const std::shared_ptr<SharedMemory> memory_;
  const uint64_t number_;
  const SharedSegment segment_;
  const size_t size_;
};

absl::StatusOr<std::unique_ptr<device::Buffer>> SharedMemory::Allocate(size_t bytes) {
  LS_ASSIGN_OR_RETURN(SharedSegment segment, SharedSegment::Make(bytes == 0 ? 1 : bytes));
  MutexLock lock(&mutex_);
  const uint64_t number = ++last_number_;
  segments_[number] = {segment.mapping.begin(), segment.mapping.size(), segment.fd.get()};
  return std::make_unique<SegmentBuffer>(shared_from_this(), number, std::move(segment), bytes);
}

void SharedMemory::Forget(uint64_t number) {
  MutexLock lock(&mutex_);
  segments_.erase(number);
}

std::optional<SharedRange> SharedMemory::Find(const void* begin, size_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(begin);
  MutexLock lock(&mutex_);
  for (const auto& [number, segment] : segments_) {
    const auto from = reinterpret_cast<uintptr_t>(segment.begin);
    if (at < from || at - from > segment.bytes || bytes > segment.bytes - (at - from)) continue;
    return SharedRange{.segment = number, .offset = at - from, .bytes = bytes};
  }
  return std::nullopt;
}

std::vector<SharedMemory::Listed> SharedMemory::List(size_t most) const {
  std::vector<Listed> list;
  MutexLock lock(&mutex_);
  for (const auto& [number, segment] : segments_) {
    if (list.size() == most) break;
    Descriptor copy(fcntl(segment.fd, F_DUPFD_CLOEXEC, 0));
    if (!copy.is_open()) break;
    list.push_back({.number = number, .bytes = segment.bytes, .fd = std::move(copy)});
  }
  return list;
}

}  // namespace lockstep::worker
