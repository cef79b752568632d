// Runs code that is broken on purpose in a child process, to test the checker's reports.
//
// Threading: for tests of one thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_BROKEN_PROGRAM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_BROKEN_PROGRAM_H_

#include <functional>
#include <string>

namespace lockstep::device::cuda {

// False, with a warning, in a build with a sanitizer, which disables the checker.
bool CheckerIsOn();

// Runs `act` in a child process and returns its stderr if it aborts, "" if it succeeds, and a note if it ends
// otherwise.
std::string SaidBy(const std::function<void()>& act);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_CHECKER_BROKEN_PROGRAM_H_
