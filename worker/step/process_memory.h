// Measures the memory of this process, and makes it return freed memory to the system.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_
#define LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_

#include <cstdint>

namespace lockstep::worker {

// The memory that a worker's process takes while it steps, beyond that after drafting its plans, for any model: code
// that runs for the first time, stacks and heaps of threads, connections to the chief (with TLS) and to peers. A
// measured value; worker_memory_test checks it.
inline constexpr int64_t kSteppingBytes = int64_t{10} << 20;

// The memory of chunks of shares in transfer from or to the chief, which the transport buffers: at most the size of the
// state itself. A measured value too.
inline constexpr int64_t kMostChunksBytes = int64_t{12} << 20;

// The forecast of this process's own memory while it steps: its resident bytes, code and libraries included, after
// returning free memory to the system, plus kSteppingBytes. 0 if the system does not report it. REQUIRES: plans are
// drafted, no data is held.
int64_t ProcessBytes();

// Makes malloc return large blocks to the system as soon as they are freed. Otherwise the heap of every thread keeps
// chunks of shares that passed through it, 20 MiB in a worker. Call it before threads start.
void ReturnLargeBlocks();

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_PROCESS_MEMORY_H_
