// How much of the machine's memory this process uses, and how it returns memory to the system.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_
#define LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_

#include <cstdint>

namespace lockstep::worker {

// What a worker's process takes beyond what it has when its plans are drafted, whatever the model: code that runs for
// the first time, stacks and heaps of threads, connections to the chief, with TLS, and the peers. Measured;
// worker_memory_test holds it.
inline constexpr int64_t kSteppingBytes = int64_t{10} << 20;

// Chunks of shares on their way from or to the chief, which the transport reads ahead: at most the state itself.
// Measured too.
inline constexpr int64_t kMostChunksBytes = int64_t{12} << 20;

// What this process, which has drafted its plans and holds no data, will take itself while it steps: its bytes in
// memory now, code and libraries included, after what it no longer needs went back to the system, and kSteppingBytes.
// 0 where the system does not say.
int64_t ProcessBytes();

// Makes malloc give large blocks back to the system as soon as they are free. Otherwise the heap of every thread keeps
// the chunks of shares that passed through it: 20 MiB in a worker. Call before threads start.
void ReturnLargeBlocks();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_
