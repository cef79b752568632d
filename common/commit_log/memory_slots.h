// Slots in memory that fail on command: what a disk or an object store may do to a request.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_COMMON_COMMIT_LOG_MEMORY_SLOTS_H_
#define LOCKSTEP_COMMON_COMMIT_LOG_MEMORY_SLOTS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/commit_log/slots.h"

namespace lockstep {

enum class SlotFault {
  kNone,
  kLost,        // the request does not arrive
  kAnswerLost,  // it takes effect, but the caller gets an error
  kLate,        // the caller gets an error; it takes effect when Arrive is called
  kTwice,       // it arrives twice, and the caller gets the second answer
};

class MemorySlots final : public Slots {
 public:
  // Called before each request.
  std::function<SlotFault()> next_fault = [] { return SlotFault::kNone; };

  absl::StatusOr<std::vector<uint64_t>> Newest(size_t limit) override {
    if (Fails()) return absl::UnavailableError("no listing");
    std::vector<uint64_t> numbers;
    for (auto it = filled_.rbegin(); it != filled_.rend() && numbers.size() < limit; ++it) numbers.push_back(it->first);
    return numbers;
  }
  absl::StatusOr<std::string> Get(uint64_t number) override {
    if (Fails()) return absl::UnavailableError("no answer");
    const auto found = filled_.find(number);
    if (found == filled_.end()) return absl::NotFoundError(Describe(number));
    return found->second;
  }
  absl::Status Create(uint64_t number, absl::string_view bytes) override {
    switch (next_fault()) {
      case SlotFault::kNone:
        return Fill(number, bytes);
      case SlotFault::kLost:
        break;
      case SlotFault::kAnswerLost:
        Fill(number, bytes).IgnoreError();
        break;
      case SlotFault::kLate:
        late_.emplace_back(number, bytes);
        break;
      case SlotFault::kTwice:
        Fill(number, bytes).IgnoreError();
        return Fill(number, bytes);
    }
    return absl::UnavailableError("the connection was reset");
  }
  absl::Status Remove(uint64_t number) override {
    filled_.erase(number);
    return absl::OkStatus();
  }
  std::string Describe(uint64_t number) const override { return absl::StrCat("slot ", number); }

  // Lets `count` late requests take effect, the oldest first.
  void Arrive(size_t count) {
    for (; count > 0 && !late_.empty(); --count) {
      Fill(late_.front().first, late_.front().second).IgnoreError();
      late_.erase(late_.begin());
    }
  }
  size_t late() const { return late_.size(); }
  std::map<uint64_t, std::string>& filled() { return filled_; }

 private:
  bool Fails() {
    const SlotFault fault = next_fault();
    return fault == SlotFault::kLost || fault == SlotFault::kAnswerLost || fault == SlotFault::kLate;
  }
  absl::Status Fill(uint64_t number, absl::string_view bytes) {
    const bool filled = filled_.emplace(number, bytes).second;
    return filled ? absl::OkStatus() : absl::AlreadyExistsError(Describe(number));
  }

  std::map<uint64_t, std::string> filled_;
  std::vector<std::pair<uint64_t, std::string>> late_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_COMMIT_LOG_MEMORY_SLOTS_H_
