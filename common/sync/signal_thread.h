// Waits for signals of the process on a thread of its own and calls a function for each.
//
// Threading: thread-compatible; owns one thread, which calls `on_signal` for one signal after another until the
// destructor begins.
#ifndef LOCKSTEP_COMMON_SYNC_SIGNAL_THREAD_H_
#define LOCKSTEP_COMMON_SYNC_SIGNAL_THREAD_H_

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace lockstep {

class SignalThread {
 public:
  // REQUIRES: every thread of the process blocks `signals`, and SIGUSR1 is one of them. The destructor wakes the thread
  // with SIGUSR1; from any other sender it is ignored.
  SignalThread(const sigset_t& signals, std::function<void(int signal)> on_signal)
      : signals_(signals), thread_([this, on_signal = std::move(on_signal)] {
          for (int signal = 0; sigwait(&signals_, &signal) == 0 && !ending_;) {
            if (signal != SIGUSR1) on_signal(signal);
          }
        }) {}
  ~SignalThread() {
    ending_ = true;
    pthread_kill(thread_.native_handle(), SIGUSR1);
    thread_.join();
  }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

 private:
  const sigset_t signals_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_SYNC_SIGNAL_THREAD_H_
