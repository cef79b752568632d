// An output queue that never makes its callers wait: texts are queued, and a thread of the queue writes them. A
// terminal that was stopped (Ctrl-S), a pager that does not read, or a hung disk blocks that thread alone.
//
// Invariants
//   * Write and SetLive never block on the output.
//   * The queue is bounded. When it is full, progress is dropped first, then new lines; both are counted. A last line
//     is never dropped.
//   * Once a descriptor cannot be written any more (its reader or terminal is gone), its texts are discarded. A text
//     that does not fit on a full disk is lost, and later ones are tried again.
// The live line is the last row of a terminal. It is erased before a text and drawn again after it, to the width that
// the terminal has at that moment.
//
// Threading: thread-safe. The thread blocks every signal but the one that asks for its stack. It ends with the process:
// an OutputQueue is never destroyed.
#ifndef LOCKSTEP_COMMON_LOG_OUTPUT_H_
#define LOCKSTEP_COMMON_LOG_OUTPUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep {

enum class OutputKind { kProgress, kLine, kLast };

struct DroppedOutput {
  int64_t lines = 0;
  int64_t progress = 0;
};

class OutputQueue {
 public:
  // Returns a live line of at most `columns` characters. Runs on the queue's thread under its lock: must not touch
  // shared state or the queue.
  using LiveLine = std::function<std::string(int columns)>;

  explicit OutputQueue(size_t limit_bytes);
  ~OutputQueue() = delete;

  // Queues `text`, with its line ends, for the descriptor `fd`.
  void Write(int fd, std::string text, OutputKind kind);
  // Shows `line` as the last row of the terminal `fd`, in place of the previous one; nullptr removes it.
  void SetLive(int fd, LiveLine line);
  // Another process draws a live line on the terminal that this queue writes to: every text erases it first.
  void ShareTerminal();
  // The numbers dropped since the last call, once there is room again to report them; zeros otherwise.
  DroppedOutput TakeDropped();
  // Waits until everything is written. False when the output accepted nothing for `patience`.
  bool Flush(absl::Duration patience);
  // True when everything was written. Async-signal-safe.
  bool IsIdle() const { return idle_; }

 private:
  struct Entry {
    int fd = 0;
    std::string text;
    OutputKind kind = OutputKind::kLine;
  };

  void Run();
  void WriteAll(int fd, const std::string& text);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !entries_.empty() || live_changed_; }
  // The next bytes to write: a text, preceded by the control sequence that erases the live line, or the live line.
  Entry TakeNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t limit_bytes_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;  // of entries_
  DroppedOutput dropped_ GUARDED_BY(mutex_);
  LiveLine live_ GUARDED_BY(mutex_);
  int live_fd_ GUARDED_BY(mutex_) = 0;
  bool live_changed_ GUARDED_BY(mutex_) = false;  // what is shown is not live_
  bool live_shown_ GUARDED_BY(mutex_) = false;
  bool shared_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> idle_{true};
  int64_t written_ GUARDED_BY(mutex_) = 0;  // grows with every write that took something
  std::set<int> dead_;                      // owned by the thread
};

// The queue of one of this process's own outputs, 1 or 2. Both share a queue when they lead to the same place, so that
// their order is kept.
OutputQueue& ProcessOutput(int fd);

// Which control sequences may be written to an output.
struct TerminalStyle {
  bool live = false;    // it is a terminal with control sequences: a line can be rewritten
  bool colour = false;  // and colours are wanted
};

// `no_color` and `term` are the variables NO_COLOR and TERM; nullptr: not set.
TerminalStyle ChooseStyle(bool is_terminal, const char* no_color, const char* term);
// The style of a descriptor of this process.
TerminalStyle StyleOf(int fd);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LOG_OUTPUT_H_
