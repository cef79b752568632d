// Buffers lines of this process's log on their way to the job's directory. Threads that log leave lines here without
// waiting (SetLogTap); the storage thread takes them.
//
// Invariant: memory is bounded. Lines that do not fit are counted, and one line in their place gives their number.
// Threading: thread-safe; never blocks on I/O, never logs.
#ifndef LOCKSTEP_CHIEF_LOGS_LOG_KEEPER_H_
#define LOCKSTEP_CHIEF_LOGS_LOG_KEEPER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/log/record.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class LogKeeper {
 public:
  explicit LogKeeper(size_t most_bytes = size_t{1} << 20) : most_bytes_(most_bytes) {}

  void Keep(const LogRecord& record) {
    const std::string line = LogRecordJson(record) + "\n";
    MutexLock lock(&mutex_);
    // Once one does not fit, what comes behind it does not either: the gap is one, and stands where it is.
    if (dropped_ > 0 || lines_.size() + line.size() > most_bytes_) {
      ++dropped_;
      newest_dropped_ = record;
      return;
    }
    lines_ += line;
  }

  // The lines since the last call, each with its newline.
  std::string Take() {
    MutexLock lock(&mutex_);
    std::string lines = std::exchange(lines_, "");
    if (const int64_t dropped = std::exchange(dropped_, 0); dropped > 0) lines += GapLine(newest_dropped_, dropped);
    return lines;
  }

 private:
  static std::string GapLine(LogRecord record, int64_t dropped) {
    record.level = LogLevel::warn;
    record.worker.clear();
    record.event.clear();
    record.message =
        "lines are missing here, because the storage did not take them in time: " + std::to_string(dropped);
    record.fields = {{"dropped_lines", dropped}};
    return LogRecordJson(record) + "\n";
  }

  const size_t most_bytes_;
  Mutex mutex_;
  std::string lines_ GUARDED_BY(mutex_);
  int64_t dropped_ GUARDED_BY(mutex_) = 0;
  LogRecord newest_dropped_ GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_LOGS_LOG_KEEPER_H_
