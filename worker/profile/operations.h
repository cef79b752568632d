// The floating-point operations and bytes of a kernel, from its shapes: its time is compared with them.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_PROFILE_OPERATIONS_H_
#define LOCKSTEP_WORKER_PROFILE_OPERATIONS_H_

#include <cstdint>

#include "worker/device/kernel.h"

namespace lockstep::worker {

// True for matrix products and convolutions, forward and backward, and attention, which consists of products.
bool IsProduct(OpType op);

// Multiplications and additions of a product or a convolution as its definition has them, padding included, whatever
// method serves it (Winograd's needs fewer); of attention those of its products, without what a causal mask hides. 0
// for every other op.
int64_t ArithmeticOperations(const device::KernelRequest& request);

// The inputs' and outputs' bytes, each once: the least that has to be moved.
int64_t BytesTouched(const device::KernelRequest& request);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_OPERATIONS_H_
