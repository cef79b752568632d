// What a thread does now, and since when: a few words that it leaves for whoever looks at a process that hangs.
//
//   NameThread("engine");
//   const NowDoing step("step ", step);
//   ...
//   const NowDoing node("node '", name, "'");   // within the step
//
// To begin and to end one costs some tens of nanoseconds and never blocks, so kernels and files may have their own.
//
// Threading: a NowDoing is owned by the thread that made it, and ends before the ones that it was made within.
#ifndef LOCKSTEP_COMMON_LIVENESS_ACTIVITY_H_
#define LOCKSTEP_COMMON_LIVENESS_ACTIVITY_H_

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/liveness/page.h"

namespace lockstep {

namespace liveness {

// Puts words and whole numbers into a text of the length of a note; what does not fit is cut.
class NoteText {
 public:
  void Add(absl::string_view part) {
    const size_t bytes = std::min(part.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, part.data(), bytes);
    size_ += bytes;
  }
  template <std::integral T>
  void Add(T number) {
    const auto end = std::to_chars(text_.data() + size_, text_.data() + text_.size(), number);
    if (end.ec == std::errc()) size_ = static_cast<size_t>(end.ptr - text_.data());
  }
  absl::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, decltype(Note::text)::kBytes> text_;
  size_t size_ = 0;
};

// The page of this process. Never fails: without an anonymous file it is memory that nobody else sees.
Page& OwnPage();
// The slot of this thread; null when too many threads have one.
ThreadSlot* OwnSlot();

struct Doing {
  std::string text;
  absl::Duration lasts;
};

struct ThreadActivity {
  int tid = 0;
  std::string name;          // "" when it has none
  std::vector<Doing> doing;  // the outermost first; empty: it waits for work, or says nothing of it
};

// What the threads that have said something do, as of `now_ns` (MonotonicNs).
std::vector<ThreadActivity> ReadActivities(const Page& page, int64_t now_ns);

// "node 'fc1' for 9.1s, in step 120 for 9.3s"; "" for nothing.
std::string DoingText(const std::vector<Doing>& doing);

// DoingText of the thread of this process that has this name and has done the same for `least`; "" where there is none.
std::string StandsAt(absl::string_view thread, absl::Duration least);

}  // namespace liveness

// The end of a path, for a note: a long one is cut in front.
inline absl::string_view NoteTail(absl::string_view path) {
  constexpr size_t kMostBytes = 88;
  return path.substr(path.size() - std::min(path.size(), kMostBytes));
}

// Gives this thread a name, for dumps, and for the system its first 15 letters.
void NameThread(absl::string_view name);

class NowDoing {
 public:
  // `parts`: words and whole numbers.
  template <typename... Parts>
  explicit NowDoing(const Parts&... parts) {
    liveness::NoteText text;
    (text.Add(parts), ...);
    Begin(text.view());
  }
  ~NowDoing() {
    if (slot_ != nullptr) slot_->depth.fetch_sub(1, std::memory_order_relaxed);
  }
  NowDoing(const NowDoing&) = delete;
  NowDoing& operator=(const NowDoing&) = delete;

 private:
  void Begin(absl::string_view text);

  liveness::ThreadSlot* slot_ = nullptr;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_ACTIVITY_H_
