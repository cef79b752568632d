// Decides what happens to a chief process before each operation on its storage: the call stops so that others can go
// on, the storage refuses, or the process is dead and does nothing any more.
//
// Threading: thread-compatible; used by one call at a time.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_OPERATION_GATE_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_OPERATION_GATE_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace lockstep::simulation {

class OperationGate {
 public:
  // Called before an operation, which `writes` or only reads. Returns OK, or the error with which it fails instead.
  absl::Status Before(bool writes) {
    if (!dead_ && stop_in_ > 0 && --stop_in_ == 0) stop_();
    if (dead_) return absl::InternalError("the process is dead");
    if (refuses_ && refuses_(writes)) return refused_();
    if (writes && fail_in_ > 0 && --fail_in_ == 0) return refused_();
    return absl::OkStatus();
  }

  void Die() { dead_ = true; }
  bool dead() const { return dead_; }
  // Calls the function of OnStop at the `operations`-th operation from now, which may set the next one. 0: never.
  void StopIn(uint64_t operations) { stop_in_ = operations; }
  bool stops() const { return stop_in_ > 0; }
  // Makes the `writes`-th write from now fail, once. 0: none.
  void FailIn(uint64_t writes) { fail_in_ = writes; }
  uint64_t fails_in() const { return fail_in_; }

  void OnStop(std::function<void()> stop) { stop_ = std::move(stop); }
  // `refuses` returns whether the storage refuses such an operation now.
  void RefusesWhen(std::function<bool(bool writes)> refuses) { refuses_ = std::move(refuses); }
  // `refused` is called for each failing operation, and returns its error.
  void OnRefused(std::function<absl::Status()> refused) { refused_ = std::move(refused); }

 private:
  bool dead_ = false;
  uint64_t stop_in_ = 0;
  uint64_t fail_in_ = 0;
  std::function<void()> stop_;
  std::function<bool(bool)> refuses_;
  std::function<absl::Status()> refused_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_OPERATION_GATE_H_
