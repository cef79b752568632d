// Records what a thread is doing and since when, in a few words, for tools that examine a process that hangs (page.h).
//
//   NameThread("engine");
//   const NowDoing step("step ", step);
//   ...
//   const NowDoing node("node '", name, "'");   // within the step
//
// Beginning and ending a NowDoing costs some tens of nanoseconds and never blocks, so single kernels and file
// operations may have one.
//
// Threading: a NowDoing is owned by the thread that made it, and is destroyed before the ones that it is nested in. The
// functions are thread-safe.
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

// Appends words and whole numbers to a text of the size of a Note's; text that does not fit is cut off.
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

// The page of this process. Never fails: if no anonymous file can be made, it is private memory that no other process
// sees.
Page& OwnPage();
// The slot of this thread; null when all kMostThreads slots are taken.
ThreadSlot* OwnSlot();

struct Doing {
  std::string text;
  absl::Duration lasts;
};

struct ThreadActivity {
  int tid = 0;
  std::string name;          // "" when it has no name
  std::vector<Doing> doing;  // the outermost first; empty: it waits for work, or reports nothing
};

// The activities of all threads with a slot, as of `now_ns` (MonotonicNs).
std::vector<ThreadActivity> ReadActivities(const Page& page, int64_t now_ns);

// "node 'fc1' for 9.1s, in step 120 for 9.3s"; "" when `doing` is empty.
std::string DoingText(const std::vector<Doing>& doing);

// DoingText of the thread of this process called `thread`, if it has been in its innermost activity for `least`; else
// "".
std::string LongActivityOf(absl::string_view thread, absl::Duration least);

}  // namespace liveness

// The end of a path, for a note: a long path loses its beginning.
inline absl::string_view NoteTail(absl::string_view path) {
  constexpr size_t kMostBytes = 88;
  return path.substr(path.size() - std::min(path.size(), kMostBytes));
}

// Names this thread, for dumps; the system gets the first 15 letters.
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
