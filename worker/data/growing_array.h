// An array of bytes that grows while a file is read, under a memory limit that several arrays share.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_GROWING_ARRAY_H_
#define LOCKSTEP_WORKER_DATA_GROWING_ARRAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::worker {

struct MemoryBudget {
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;

  // Takes `bytes` more. ResourceExhausted when that exceeds the limit; the message does not name the file.
  absl::Status Take(int64_t bytes) {
    if (bytes > limit_bytes - used_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the data needs more than the ", limit_bytes, " bytes of data.memory; raise it"));
    }
    used_bytes += bytes;
    return absl::OkStatus();
  }

  // The memory that one row or record may take while it is read: the rest of the budget, but at least 1 MiB.
  int64_t scratch_bytes() const { return std::max(limit_bytes - used_bytes, int64_t{1} << 20); }
};

class GrowingArray {
 public:
  // REQUIRES: `budget` outlives the array.
  explicit GrowingArray(MemoryBudget* budget) : budget_(budget) {}

  // ResourceExhausted when the budget or the machine's memory is exhausted; the message does not name the file.
  absl::Status Append(const void* bytes, size_t count) {
    if (absl::Status taken = budget_->Take(static_cast<int64_t>(count)); !taken.ok()) return taken;
    if (count > capacity_ - size_) {
      const size_t wanted = capacity_ + capacity_ / 2 + count + 4096;
      void* const moved = std::realloc(data_.get(), wanted);
      if (moved == nullptr) return absl::ResourceExhaustedError(absl::StrCat("no memory for ", wanted, " bytes"));
      static_cast<void>(data_.release());
      data_.reset(static_cast<std::byte*>(moved));
      capacity_ = wanted;
    }
    std::memcpy(data_.get() + size_, bytes, count);
    size_ += count;
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Append(T value) {
    return Append(&value, sizeof(value));
  }

  size_t size() const { return size_; }
  std::byte* data() { return data_.get(); }

  // Returns the bytes and leaves the array empty; frees the spare capacity.
  std::shared_ptr<std::byte> Release() {
    std::byte* const bytes = data_.release();
    void* const moved = std::realloc(bytes, size_ == 0 ? 1 : size_);
    size_ = capacity_ = 0;
    return {moved == nullptr ? bytes : static_cast<std::byte*>(moved), Free{}};
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };

  MemoryBudget* budget_;
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_GROWING_ARRAY_H_
