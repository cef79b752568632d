// Runs the commands of a job's hooks, on one thread per hook, one after another. A short queue holds those that wait;
// Start never waits.
//
//   1 takes commands ──Close──▶ 2 ending: commands have kAtEnd left, those of the job's end their whole limit
//     ──all ended, or Cancel──▶ 3 idle
//
// Threading: thread-safe. The destructor cancels what runs and joins.
#ifndef LOCKSTEP_CHIEF_HOOKS_COMMAND_QUEUE_H_
#define LOCKSTEP_CHIEF_HOOKS_COMMAND_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "chief/hooks/command.h"
#include "common/sync/mutex.h"
#include "common/sync/queue.h"

namespace lockstep::chief {

struct HookCommand {
  std::string hook;
  int64_t step = 0;
  bool at_end = false;  // of the hook `on: end`: Close leaves it its whole limit
  Command command;
};

class CommandQueue {
 public:
  static constexpr size_t kMostWaiting = 16;  // per hook
  // The time in which commands that run or wait at Close must end, all together.
  static constexpr absl::Duration kAtEnd = absl::Seconds(5);

  // Called on the hook's thread after each command; the next one starts when it returns.
  using Ended = std::function<void(const HookCommand&, const CommandEnd&)>;
  explicit CommandQueue(Ended ended, absl::Duration at_end = kAtEnd) : ended_(std::move(ended)), at_end_(at_end) {}
  ~CommandQueue();

  // Queues a command. Returns false, and drops it, if too many wait or the queue is closed.
  bool Start(HookCommand command);
  void Close();
  // Terminates running commands and drops those that wait.
  void Cancel();
  // Whether no command runs or waits.
  bool idle() const { return pending_ == 0; }
  // The number of waiting commands that Close or Cancel dropped.
  int dropped() const { return dropped_; }

 private:
  static constexpr int64_t kOpen = std::numeric_limits<int64_t>::max();

  struct Lane {
    BoundedQueue<HookCommand> waiting{kMostWaiting};
    std::thread thread;
  };

  void Work(Lane& lane);
  void RunOne(const HookCommand& command);
  bool MustEnd(bool at_end) const;

  const Ended ended_;
  const absl::Duration at_end_;
  std::atomic<int> pending_{0};
  std::atomic<int> dropped_{0};
  std::atomic<int64_t> closed_at_{kOpen};  // by SteadyNow, in nanoseconds
  std::atomic<bool> cancelled_{false};
  Mutex mutex_;
  std::map<std::string, std::unique_ptr<Lane>> lanes_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_COMMAND_QUEUE_H_
