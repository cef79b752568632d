// Estimates the memory of a serialised tf.Example once it is parsed. A small file can become a large message: an empty
// string takes two bytes in the file and some forty in memory.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_EXAMPLE_COST_H_
#define LOCKSTEP_WORKER_DATA_EXAMPLE_COST_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep::worker {

// The bytes of memory, estimated high rather than low. For malformed bytes, the memory of the part before the error.
// Allocates nothing.
int64_t ExampleCost(absl::string_view bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_EXAMPLE_COST_H_
