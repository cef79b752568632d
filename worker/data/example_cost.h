// What a serialised tf.Example takes in memory once it is parsed: an empty string is two bytes of a file and some forty
// in memory, so that a small file may become a large message.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_EXAMPLE_COST_H_
#define LOCKSTEP_WORKER_DATA_EXAMPLE_COST_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep::worker {

// Bytes, rather too many than too few; of what comes before the mistake when the bytes are no message. Allocates
// nothing.
int64_t ExampleCost(absl::string_view bytes);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_EXAMPLE_COST_H_
