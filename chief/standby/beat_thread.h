// Shows standby chiefs that this one lives. It has a thread of its own, so that long work of the storage thread
// (verifying a checkpoint, removing a hundred files) does not make the chief look dead.
//
// Threading: thread-compatible; owns one thread, which blocks on the storage. The destructor waits for its current
// write.
#ifndef LOCKSTEP_CHIEF_STANDBY_BEAT_THREAD_H_
#define LOCKSTEP_CHIEF_STANDBY_BEAT_THREAD_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/standby/chief_beat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class BeatThread {
 public:
  // `write` makes one beat; `workers` returns the number of workers with an open session; the thread calls both.
  // `look`: the interval of checks whether a beat is due.
  BeatThread(std::function<absl::Status()> write, std::function<size_t()> workers,
             absl::Duration look = absl::Seconds(1))
      : write_(std::move(write)), workers_(std::move(workers)), look_(look), thread_([this] { Run(); }) {}
  ~BeatThread() {
    {
      MutexLock lock(&mutex_);
      stop_ = true;
      changed_.Signal();
    }
    thread_.join();
  }
  BeatThread(const BeatThread&) = delete;
  BeatThread& operator=(const BeatThread&) = delete;

 private:
  void Run() {
    NameThread("beat");
    SteadyClock clock;
    ChiefBeat beat;
    bool fails = false;
    while (true) {
      if (beat.Due(clock.Now(), workers_())) {
        const absl::Status written = write_();
        if (!written.ok() && !fails) {
          LS_LOG(warn, "standby chiefs are not told that this one lives: ", written.message());
        }
        fails = !written.ok();
      }
      MutexLock lock(&mutex_);
      if (!stop_) changed_.WaitWithTimeout(&mutex_, look_);
      if (stop_) return;
    }
  }

  const std::function<absl::Status()> write_;
  const std::function<size_t()> workers_;
  const absl::Duration look_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_BEAT_THREAD_H_
