// A thread for calls that stop halfway: of this thread and the one that drives it, one runs at a time, so that a
// schedule stays a function of its seed.
//
//   driver:  Begin(call) ──▶ false, it has stopped ──▶ … ──▶ Resume ──▶ true, it has ended
//   call:         └─ Stop() ──▶ … ──────────────────────────▶ goes on
//
// Threading: the driver's functions are for one thread, Stop for the call.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_STORAGE_THREAD_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_STORAGE_THREAD_H_

#include <functional>
#include <optional>
#include <semaphore>
#include <thread>

namespace lockstep::simulation {

class StorageThread {
 public:
  StorageThread() = default;
  // REQUIRES: no call is under way.
  ~StorageThread();
  StorageThread(const StorageThread&) = delete;
  StorageThread& operator=(const StorageThread&) = delete;

  // Runs `call` until it stops or ends. True: it has ended. REQUIRES: none is under way.
  bool Begin(std::function<void()> call);
  // Goes on with the call that has stopped.
  bool Resume();
  bool under_way() const { return under_way_; }

  // The driver's turn, until it resumes this call.
  void Stop();

 private:
  void Run();
  bool Turn();

  std::function<void()> call_;  // none: the thread is to end
  bool under_way_ = false;
  std::binary_semaphore turn_of_call_{0};
  std::binary_semaphore turn_of_driver_{0};
  std::optional<std::thread> thread_;  // once there was a call
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_STORAGE_THREAD_H_
