// Runs a program that is broken on purpose in a process of its own, for tests of what is said of it.
//
// Threading: for tests of one thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_BROKEN_PROGRAM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_BROKEN_PROGRAM_H_

#include <functional>
#include <string>

namespace lockstep::device::cuda {

// False, and said so, where a sanitizer has the checker's place.
bool CheckerIsOn();

// What `act` writes to stderr until it aborts; "" when it ends well. Says so where it ends otherwise.
std::string SaidBy(const std::function<void()>& act);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_BROKEN_PROGRAM_H_
