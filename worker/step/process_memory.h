// What this process takes of the machine's memory, and how it gives memory back.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_
#define LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_

#include <cstdint>

namespace lockstep::worker {

// What the first steps of a process add to it, whatever the model: code that runs then for the first time, stacks and
// heaps of threads. Measured; forecast_memory_test holds it.
inline constexpr int64_t kFirstStepsBytes = int64_t{3} << 20;

// What this process, which has drafted its plans and holds no data, will take itself while it steps: its bytes in
// memory now, code and libraries included, after what it no longer needs went back to the system, and kFirstStepsBytes.
// 0 where the system does not say.
int64_t ProcessBytes();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_
