// A thread for calls that stop halfway. Only one of this thread and its driver runs at a time, so that a schedule stays
// a function of its seed.
//
//   driver:  Begin(call) ──▶ false, it has stopped ──▶ … ──▶ Resume ──▶ true, it has ended
//   call:         └─ Stop() ──▶ … ──────────────────────────▶ goes on
//
// Threading: thread-compatible; one driver calls all functions except Stop, which the call itself calls.
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

  // Runs `call` until it stops or ends. Returns whether it has ended. REQUIRES: none is under way.
  bool Begin(std::function<void()> call);
  // Continues the call that has stopped. Returns whether it has ended.
  bool Resume();
  bool under_way() const { return under_way_; }

  // Stops the call and gives the turn to the driver, until it resumes the call.
  void Stop();

 private:
  void Run();
  bool Turn();

  std::function<void()> call_;  // empty: the thread must end
  bool under_way_ = false;
  std::binary_semaphore turn_of_call_{0};
  std::binary_semaphore turn_of_driver_{0};
  std::optional<std::thread> thread_;  // started by the first call
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_STORAGE_THREAD_H_
