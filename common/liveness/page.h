// The layout of the memory in which a process publishes what its threads are doing. It is an anonymous file (memfd),
// which every process of the same user can open through /proc, so it can be read while its owner is stopped or hangs.
//
// Invariants
//   * Each text has one writer at a time, which never waits. A reader retries up to a hundred times while a text is
//     being written, and then accepts a mixture of old and new.
// Threading: thread-safe, across processes too.
#ifndef LOCKSTEP_COMMON_LIVENESS_PAGE_H_
#define LOCKSTEP_COMMON_LIVENESS_PAGE_H_

#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::liveness {

// The file can neither shrink nor grow, so that a process that maps it can always read all of it.
inline constexpr int kPageSeals = F_SEAL_SHRINK | F_SEAL_GROW;
inline constexpr char kPageName[] = "lockstep-liveness";
inline constexpr uint64_t kPageMagic = 0x6c6f636b73746501;  // changes with the layout
inline constexpr size_t kMostThreads = 256;
inline constexpr size_t kMostNotes = 4;  // nested activities of a thread

// Nanoseconds of a clock that all processes of a machine share. It stops while the machine is suspended.
inline int64_t MonotonicNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// A text of at most 8 * kWords bytes; a longer one is cut.
template <size_t kWords>
class SharedText {
 public:
  static constexpr size_t kBytes = 8 * kWords;

  void Set(absl::string_view text) {
    const uint32_t version = version_.load(std::memory_order_relaxed);
    version_.store(version | 1, std::memory_order_relaxed);
    const size_t bytes = std::min(text.size(), kBytes);
    const size_t words = std::min(bytes / 8 + 1, kWords);  // with a zero behind the text where there is room
    for (size_t i = 0; i < words; ++i) {
      uint64_t word = 0;
      const size_t at = 8 * i;
      if (at < bytes) std::memcpy(&word, text.data() + at, std::min<size_t>(8, bytes - at));
      words_[i].store(word, std::memory_order_release);
    }
    version_.store((version | 1) + 1, std::memory_order_release);
  }

  std::string Get() const {
    std::array<char, kBytes> copy;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const uint32_t before = version_.load(std::memory_order_acquire);
      for (size_t i = 0; i < kWords; ++i) {
        const uint64_t word = words_[i].load(std::memory_order_acquire);
        std::memcpy(copy.data() + 8 * i, &word, 8);
      }
      if (before % 2 == 0 && version_.load(std::memory_order_relaxed) == before) break;
    }
    return std::string(copy.data(), strnlen(copy.data(), kBytes));
  }

 private:
  std::atomic<uint32_t> version_{0};  // odd while it is written
  std::array<std::atomic<uint64_t>, kWords> words_{};
};

struct Note {
  std::atomic<int64_t> since_ns{0};
  SharedText<14> text;
};

struct ThreadSlot {
  std::atomic<int32_t> tid{0};     // 0: free
  std::atomic<uint32_t> depth{0};  // current notes, the outermost first; those beyond kMostNotes are not stored
  SharedText<4> name;
  std::array<Note, kMostNotes> notes;
};

struct Page {
  std::atomic<uint64_t> magic{0};
  std::atomic<int32_t> pid{0};
  std::atomic<int64_t> beat_ns{0};  // when the thread that only writes this last ran; 0: no such thread
  std::atomic<uint32_t> dumps{0};   // written so far
  SharedText<8> role;               // "chief", "worker-1"; empty: the process does not answer requests for dumps
  SharedText<64> folder;            // where dumps go
  SharedText<80> last_dump;         // the path of the newest
  std::array<ThreadSlot, kMostThreads> threads;
};

}  // namespace lockstep::liveness

#endif  // LOCKSTEP_COMMON_LIVENESS_PAGE_H_
