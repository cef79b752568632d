// The description of a call, which ranks exchange and compare before its data.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_CALL_WORDS_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_CALL_WORDS_H_

#include <cstdint>
#include <string>

#include "worker/collectives/call.h"

namespace lockstep::worker {

struct CallWords {
  int64_t step = 0;
  uint32_t attempt = 0;
  uint32_t kind = 0;
  int64_t root = 0;
  uint64_t elements = 0;  // integers, addends or floats
  uint64_t bytes = 0;
  uint64_t blocks = 0;  // a digest of the block sizes and of the runs of an exact sum

  friend bool operator==(const CallWords&, const CallWords&) = default;
  static CallWords Of(const Call& call);
  std::string Name() const;  // "all-gather of step 41, attempt 0, over 0 elements and 100 bytes"
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_CALL_WORDS_H_
