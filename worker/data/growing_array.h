// Elements of which nobody knows how many will come, under a limit that several arrays share.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_GROWING_ARRAY_H_
#define LOCKSTEP_WORKER_DATA_GROWING_ARRAY_H_

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
};

class GrowingArray {
 public:
  // REQUIRES: `budget` outlives the array.
  explicit GrowingArray(MemoryBudget* budget) : budget_(budget) {}

  // ResourceExhausted when the budget, or the memory, does not suffice; without the place.
  absl::Status Append(const void* bytes, size_t count) {
    if (static_cast<int64_t>(count) > budget_->limit_bytes - budget_->used_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the data needs more than the ", budget_->limit_bytes, " bytes of data.memory; raise it"));
    }
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
    budget_->used_bytes += static_cast<int64_t>(count);
    return absl::OkStatus();
  }

  template <typename T>
  absl::Status Append(T value) {
    return Append(&value, sizeof(value));
  }

  size_t size() const { return size_; }
  std::byte* data() { return data_.get(); }

  // Gives the bytes away; what was set aside for more is returned.
  std::shared_ptr<const std::byte> Release() {
    std::byte* const bytes = data_.release();
    void* const moved = std::realloc(bytes, size_ == 0 ? 1 : size_);
    size_ = capacity_ = 0;
    return {static_cast<const std::byte*>(moved == nullptr ? bytes : moved),
            [](const std::byte* p) { std::free(const_cast<std::byte*>(p)); }};
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
