// The floating-point operations and bytes of a kernel, by its shapes, to judge its run time.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_PROFILE_OPERATIONS_H_
#define LOCKSTEP_WORKER_PROFILE_OPERATIONS_H_

#include <cstdint>

#include "worker/device/kernel.h"

namespace lockstep::worker {

// True for matrix products, convolutions and attention, forward and backward.
bool IsProduct(OpType op);

// The multiplications and additions of a product or a convolution by its definition, padding included, whatever the
// algorithm (Winograd's needs fewer); for attention those of its two products, without scores that a causal mask
// excludes. 0 for every other op.
int64_t ArithmeticOperations(const device::KernelRequest& request);

// The bytes of all inputs and outputs, each counted once: a lower bound of the memory traffic.
int64_t BytesTouched(const device::KernelRequest& request);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_OPERATIONS_H_
